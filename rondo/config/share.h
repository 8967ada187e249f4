// Locating the files shipped with Rondo (recipes, tables, benchmark peers) by name.
#pragma once

#include <string>
#include <vector>

namespace rondo {

// The folder with recipes/ and tables/: $RONDO_SHARE, share/rondo of the installation, or the
// source tree of the build. Throws Error{io} if there is none.
std::string share_folder();

// The path of `name` in `folder` ("recipes", "tables"), with ".toml" appended; "" if there is no
// such file. Names consist of letters, digits, '-', '_', '.' and '/', and cannot leave the folder.
std::string find_shared(const std::string& folder, const std::string& name);

// All names in `folder`, sorted, without ".toml".
std::vector<std::string> list_shared(const std::string& folder);

}  // namespace rondo
