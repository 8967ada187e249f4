// A recipe to edit, with every key explained.
#pragma once

#include <string>

namespace rondo {

// The whole of recipe `from` (with `mini`: its small size) as a TOML file; keys that have their
// default are commented out. `name` is what the file will be called, without ".toml".
std::string commented_recipe(const std::string& name, const std::string& from, bool mini);

}  // namespace rondo
