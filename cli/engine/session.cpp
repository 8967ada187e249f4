// Starts torch; folders and documents.
#include "cli/engine/session.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "rondo/base/progress.h"
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

void read_with_progress(Generator& document, const std::vector<int32_t>& tokens) {
  constexpr size_t kTokensAtOnce = 16384;
  ProgressOptions shown;
  shown.delay = 2;
  Progress progress("reading", static_cast<int64_t>(tokens.size()), shown);
  for (size_t first = 0; first < tokens.size(); first += kTokensAtOnce) {
    const size_t last = std::min(first + kTokensAtOnce, tokens.size());
    document.read({tokens.begin() + static_cast<std::ptrdiff_t>(first),
                   tokens.begin() + static_cast<std::ptrdiff_t>(last)});
    progress.update(static_cast<int64_t>(last));
  }
  progress.finish();
}

}  // namespace rondo::cli
