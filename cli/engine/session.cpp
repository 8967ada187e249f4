// Starting torch; folders and documents.
#include "cli/engine/session.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/base/lost_mapping.h"
#include "rondo/base/memory_limit.h"
#include "rondo/data/text_source.h"
#include "rondo/nn/allocator.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::cli {
namespace {

// libgomp ends the process where it cannot start a thread: whether all can be had is tried first.
void require_threads(int64_t count) {
  std::mutex mutex;
  std::unique_lock<std::mutex> held(mutex);  // so that all of them are there at once
  std::vector<std::thread> started;
  std::string failure;
  try {
    started.reserve(static_cast<size_t>(count));
    for (int64_t i = 1; i < count; ++i) {
      started.emplace_back([&mutex] { const std::lock_guard<std::mutex> wait(mutex); });
    }
  } catch (const std::exception& error) {
    failure = error.what();
  }
  held.unlock();
  for (std::thread& thread : started) thread.join();
  if (failure.empty()) return;
  throw Error(ExitCode::failure,
              fmt::format("cannot start {} threads, only {}: {}{}", count, started.size() + 1,
                          failure, named_limits()),
              "use fewer threads, or raise the limit (ulimit -u, ulimit -v)");
}

// Makes OpenBLAS map the buffers of its threads now, while there is room for them.
void take_blas_buffers() {
  constexpr int64_t kSide = 256;  // enough for it to use all threads
  const at::Tensor ones = at::ones({kSide, kSide});
  at::mm(ones, ones);
}

}  // namespace

void start_engine(const ComputeOptions& how) {
#if defined(__GLIBC__)
  // Beside tensors, which have an allocator of their own, scratch memory of libtorch's operations
  // comes and goes every step: its pages are not handed back to the system each time either. Under
  // ulimit -v or -d nothing is kept that is not needed.
  if (named_limits().empty()) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
  }
#endif
  report_lost_mappings();
  check_threads(how.threads, "--threads");
  const int64_t threads =
      how.threads > 0 ? how.threads : std::max<int64_t>(1, threads_with_room(usable_cores()));
  require_engine_room(threads);
  require_threads(threads);
  at::set_num_threads(static_cast<int>(threads));
  if (!named_limits().empty()) take_blas_buffers();
  nn::install_allocator();
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
