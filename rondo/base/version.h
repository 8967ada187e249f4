// The version of Rondo, defined only here.
#pragma once

namespace rondo {

// Semantic versioning; also written to the metadata of every file Rondo creates.
constexpr const char* kVersion = "0.1.0";

// The commit of this build, with "-dirty" appended if the tree had changes; "unknown" outside git.
const char* build_commit();

}  // namespace rondo
