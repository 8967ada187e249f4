// Starting torch; folders and documents.
#include "cli/engine/session.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <thread>

#include "rondo/data/text_source.h"
#include "rondo/nn/allocator.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::cli {

void start_engine(const ComputeOptions& how) {
#if defined(__GLIBC__)
  // Beside tensors, which have an allocator of their own, scratch memory of libtorch's operations
  // comes and goes every step: its pages are not handed back to the system each time either.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
  nn::install_allocator();
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  at::set_num_threads(
      static_cast<int>(how.threads > 0 ? how.threads : std::max<int64_t>(1, cores)));
  nn::use_kernels(how.kernels == "reference" ? nn::Kernels::reference : nn::Kernels::fused);
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
