// Locating shipped files.
#include "rondo/config/share.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/own_files.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".toml";

bool holds_recipes(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "recipes" / "data.toml", ignored);
}

bool is_shared_name(const std::string& name) {
  const bool letters = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  });
  return letters && !name.empty() && name.front() != '/' && name.find("..") == std::string::npos;
}

}  // namespace

std::string share_folder() {
  const char* given = std::getenv("RONDO_SHARE");
  if (given != nullptr && *given != '\0') {
    if (holds_recipes(given)) return given;
    throw Error(ExitCode::io, std::string("RONDO_SHARE: ") + given + ": has no recipes/data.toml",
                "set it to the folder that contains recipes/ and tables/, or unset it");
  }
  const fs::path library = library_folder();
  for (const char* from : {"../share/rondo", "../../share/rondo", "../..", "..", "."}) {
    std::string folder = (library / from).lexically_normal().string();
    if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (holds_recipes(folder)) return folder;
  }
  throw Error(ExitCode::io,
              library.string() + ": no recipes/ found in share/rondo or a source tree nearby",
              "set RONDO_SHARE to the folder that contains recipes/ and tables/");
}

std::string find_shared(const std::string& folder, const std::string& name) {
  if (!is_shared_name(name)) return "";
  const std::string path = share_folder() + "/" + folder + "/" + name + std::string(kEnding);
  return exists(path) ? path : "";
}

std::vector<std::string> list_shared(const std::string& folder) {
  const fs::path root = fs::path(share_folder()) / folder;
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(root, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().extension() != kEnding) continue;
    std::string name = fs::relative(it->path(), root).string();
    names.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  if (error) {
    throw Error(ExitCode::io, root.string() + ": cannot list: " + error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rondo
