// The one place that says which Rondo this is.
#pragma once

namespace rondo {

// Follows semantic versioning; also written into the metadata of every file Rondo makes.
constexpr const char* kVersion = "0.1.0";

// The commit it was built from, with "-dirty" behind it if files had changed; "unknown" outside
// git.
const char* build_commit();

}  // namespace rondo
