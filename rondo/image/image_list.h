// Expands files and folders given by the user into a list of image files.
#pragma once

#include <string>
#include <vector>

namespace rondo {

// In the order given. A folder stands for every image below it (is_image_name()), sorted by path;
// names that start with a dot are skipped, links are followed. Any other path stands for itself,
// whether it exists or not: the reader reports errors. Error{bad_input} for a folder without
// images, Error{io} for one that cannot be listed.
std::vector<std::string> list_images(const std::vector<std::string>& paths);

}  // namespace rondo
