// Starting torch, taking turns, and the thread that runs torch.
#include "rondo/infer/runtime.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <climits>

#include "rondo/base/lost_mapping.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/require.h"
#include "rondo/nn/allocator.h"

namespace rondo {
namespace {

// libgomp aborts the process if it cannot start a thread, and torch's pthreadpool waits for it
// forever, so this starts as many as there may be at once, for a moment: count - 1 in libgomp, for
// the caller and for the runtime's thread; in pthreadpool, which torch replaces when the first
// parallel loop begins; in our team; and the runtime's thread.
void require_threads(int64_t count) {
  const int64_t all = 5 * (count - 1) + 1;
  std::mutex mutex;
  std::unique_lock<std::mutex> held(mutex);  // keeps all of them alive at once
  std::vector<std::thread> started;
  std::string failure;
  try {
    started.reserve(static_cast<size_t>(all));
    for (int64_t i = 0; i < all; ++i) {
      started.emplace_back([&mutex] { const std::lock_guard<std::mutex> wait(mutex); });
    }
  } catch (const std::exception& error) {
    failure = error.what();
  }
  held.unlock();
  for (std::thread& thread : started) thread.join();
  if (failure.empty()) return;
  throw Error(ExitCode::failure,
              fmt::format("cannot start {} threads: {}{}", count, failure, named_limits()),
              "use fewer threads, or raise the limit (ulimit -u, ulimit -v), or have smaller "
              "stacks (ulimit -s)");
}

// Makes OpenBLAS map its per-thread buffers now, while there is memory for them.
void take_blas_buffers() {
  constexpr int64_t kSide = 256;  // enough for it to use all threads
  const at::Tensor ones = at::ones({kSide, kSide});
  at::mm(ones, ones);
}

// Tensors have their own allocator, but libtorch's operations allocate and free scratch memory at
// every step: keep those pages instead of returning them to the system. Not under ulimit -v or -d,
// where memory is scarce.
void keep_freed_pages() {
#if defined(__GLIBC__)
  if (!named_limits().empty()) return;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

Runtime*& started() {
  static Runtime* runtime = nullptr;
  return runtime;
}

std::mutex& start_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Runtime& Runtime::start(const RuntimeOptions& options) {
  const std::lock_guard<std::mutex> lock(start_mutex());
  keep_freed_pages();
  report_lost_mappings();
  check_threads(options.threads, "--threads");
  const int64_t threads = options.threads > 0
                              ? options.threads
                              : std::max<int64_t>(1, threads_with_room(usable_cores()));
  require_engine_room(threads);
  require_threads(threads);
  at::set_num_threads(static_cast<int>(threads));
  if (!named_limits().empty()) take_blas_buffers();
  nn::install_allocator();
  nn::use_kernels(options.kernels);
  static std::unique_ptr<Runtime> runtime(new Runtime());
  runtime->use_threads(static_cast<int>(threads));
  started() = runtime.get();
  return *runtime;
}

Runtime& Runtime::get() {
  {
    const std::lock_guard<std::mutex> lock(start_mutex());
    if (started() != nullptr) return *started();
  }
  return start({});
}

Runtime::Runtime() = default;

Runtime::~Runtime() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

void Runtime::use_threads(int threads) {
  require(threads >= 1, "runtime: expected 1 or more threads, got {}", threads);
  if (threads == threads_ && team_ != nullptr) return;
  threads_ = threads;
  team_ = std::make_unique<kernels::Team>(threads);
  if (worker_.joinable()) run_on_worker([threads] { at::set_num_threads(threads); });
}

Runtime::Turn::Turn(Runtime& runtime) : runtime_(runtime) {
  std::unique_lock<std::mutex> lock(runtime_.mutex_);
  const uint64_t ticket = runtime_.next_ticket_++;
  runtime_.changed_.wait(lock, [&] { return runtime_.served_ == ticket; });
}

Runtime::Turn::~Turn() {
  {
    const std::lock_guard<std::mutex> lock(runtime_.mutex_);
    ++runtime_.served_;
  }
  runtime_.changed_.notify_all();
}

void Runtime::run_on_worker(const std::function<void()>& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!worker_.joinable()) worker_ = std::thread([this] { serve(); });
  work_ = &work;
  changed_.notify_all();
  changed_.wait(lock, [&] { return work_ == nullptr; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Runtime::serve() {
  at::set_num_threads(threads_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return work_ != nullptr || closing_; });
    if (closing_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*work_)();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace rondo
