// Modules of Rondo loaded at run time, so that their dependencies stay isolated from the rest of
// the process.
#pragma once

#include <string>

namespace rondo {

// The function `symbol` of the module `file` ("librondo_gloo.so"), which stays loaded. Its symbols
// are local, and it resolves its own libraries first. Throws Error{failure} saying that `what`
// cannot be loaded.
void* plugin_function(const std::string& file, const char* symbol, const std::string& what);

}  // namespace rondo
