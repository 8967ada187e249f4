// Locates Rondo's files from the address of its code.
#include "rondo/base/own_files.h"

#include <dlfcn.h>

#include <filesystem>

namespace rondo {

namespace fs = std::filesystem;

std::string library_folder() {
  Dl_info info = {};
  const auto* here = reinterpret_cast<const void*>(&library_folder);
  std::string path = dladdr(here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  std::error_code ignored;
  if (path.find('/') == std::string::npos) {  // a program reports argv[0]
    path = fs::read_symlink("/proc/self/exe", ignored).string();
  }
  const fs::path whole = fs::weakly_canonical(path, ignored);
  return (whole.empty() ? fs::path(path) : whole).parent_path().string();
}

std::string module_path(const std::string& name) {
  const fs::path folder = library_folder();
  std::error_code ignored;
  const fs::path installed = folder / "rondo" / name;
  return (fs::exists(installed, ignored) ? installed : folder / name).string();
}

}  // namespace rondo
