// Editable recipes with every key documented.
#pragma once

#include <string>

namespace rondo {

// The complete recipe `from` (with `mini`: at its small size) as a TOML file; keys at their default
// are commented out. `name` is the file name without ".toml".
std::string commented_recipe(const std::string& name, const std::string& from, bool mini);

}  // namespace rondo
