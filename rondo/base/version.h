// The one place that says which Rondo this is.
#pragma once

namespace rondo {

// Follows semantic versioning; also written into the metadata of every file Rondo makes.
constexpr const char* kVersion = "0.1.0";

}  // namespace rondo
