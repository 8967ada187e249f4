// Which image files a user means by the names of files and folders.
#pragma once

#include <string>
#include <vector>

namespace rondo {

// In the order given. A folder stands for every image below it (is_image_name()), sorted by path;
// names that begin with a dot are left out, links are followed. Any other path stands for itself,
// there or not: whoever reads it says what is wrong.
// Error{bad_input} for a folder without images, Error{io} for one that cannot be listed.
std::vector<std::string> list_images(const std::vector<std::string>& paths);

}  // namespace rondo
