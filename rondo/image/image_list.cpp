// Finding images in folders.
#include "rondo/image/image_list.h"

#include <fmt/core.h>

#include <climits>
#include <filesystem>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/image/decode.h"

namespace rondo {

std::vector<std::string> list_images(const std::vector<std::string>& paths) {
  std::vector<std::string> images;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      images.push_back(path);
      continue;
    }
    const size_t before = images.size();
    for (std::string& file : list_sources(path)) {
      if (is_image_name(file)) {
        images.push_back(std::move(file));
      }
    }
    if (images.size() == before) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: contains no images", printable(path, PATH_MAX)),
                  "image files must end in .jpg, .jpeg or .png");
    }
  }
  return images;
}

}  // namespace rondo
