// Starting torch; folders and documents.
#include "cli/engine/session.h"

#include <cstdlib>
#include <iostream>
#include <iterator>

#include "rondo/data/text_source.h"
#include "rondo/infer/runtime.h"

namespace rondo::cli {

void start_engine(const ComputeOptions& how) {
  RuntimeOptions options;
  options.threads = how.threads;
  options.kernels = how.kernels == "reference" ? nn::Kernels::reference : nn::Kernels::fused;
  Runtime::start(options);
}

std::string cache_folder(const std::string& given) {
  if (!given.empty()) return given;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg != '\0') return std::string(xdg) + "/rondo";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/rondo" : ".rondo-cache";
}

std::string read_document(const std::string& path) {
  if (path != "-") return read_source(path);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace rondo::cli
