// What all computing in a process shares: torch's threads, our allocator, which kernels run, and
// one team of threads for decoding however many sessions there are. Made by whoever uses the
// library: Runtime::start() with options, or with defaults by the first that needs it.
//
// Thread-safe but for start() and use_threads(), which must not run beside anything else.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "rondo/kernels/team.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo {

struct RuntimeOptions {
  int64_t threads = 0;  // 0 = one for each core this process may use
  nn::Kernels kernels = nn::Kernels::fused;
};

class Runtime {
 public:
  // Error if the threads or their memory cannot be had. May be called again to change the options.
  static Runtime& start(const RuntimeOptions& options);
  static Runtime& get();

  int threads() const { return threads_; }
  void use_threads(int threads);

  // Whoever has the turn may use all threads; others wait, first come, first served.
  class Turn {
   public:
    explicit Turn(Runtime& runtime);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    kernels::Team& team() const { return *runtime_.team_; }
    // Runs `work`, which uses torch, on the runtime's own thread, and waits for it: torch's OpenMP
    // starts a team of threads for every thread that calls it. Throws what `work` throws.
    void compute(const std::function<void()>& work) const { runtime_.run_on_worker(work); }

   private:
    Runtime& runtime_;
  };
  // Takes a turn for it.
  void compute(const std::function<void()>& work) { Turn(*this).compute(work); }

  ~Runtime();

 private:
  Runtime();
  void run_on_worker(const std::function<void()>& work);
  void serve();

  int threads_ = 1;
  std::unique_ptr<kernels::Team> team_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ticket_ = 0;
  uint64_t served_ = 0;  // the ticket whose turn it is

  // The thread that torch runs on; all guarded by mutex_.
  std::thread worker_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace rondo
