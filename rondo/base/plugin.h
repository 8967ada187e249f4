// Libraries of our own that are loaded while the program runs, so that what they link to is kept
// apart from everything else in the process.
#pragma once

#include <string>

namespace rondo {

// The function `symbol` of the module `file` ("librondo_gloo.so"), which stays loaded. Its symbols
// are seen by nobody else and it sees its own libraries first. Error{failure} saying that `what`
// cannot be loaded.
void* plugin_function(const std::string& file, const char* symbol, const std::string& what);

}  // namespace rondo
