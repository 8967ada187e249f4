// Files that come with Rondo (recipes, tables, peers of benchmarks): where they are, by name.
#pragma once

#include <string>
#include <vector>

namespace rondo {

// The folder that holds recipes/ and tables/: $RONDO_SHARE, or share/rondo of the installation, or
// the source tree that it was built in. Error{io} if there is none.
std::string share_folder();

// The path of `name` below `folder` ("recipes", "tables"), with ".toml" at its end; "" if there is
// no such file. A name is of letters, digits, '-', '_', '.' and '/', and never leads outside.
std::string find_shared(const std::string& folder, const std::string& name);

// Every name below `folder`, sorted, without ".toml".
std::vector<std::string> list_shared(const std::string& folder);

}  // namespace rondo
