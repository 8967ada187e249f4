// Process-wide compute resources: torch's threads, our allocator, the choice of kernels, and one
// thread team for decoding, however many sessions there are. Started by Runtime::start() with
// options, or with defaults on first use.
//
// Thread-safe except for start() and use_threads(), which must not run concurrently with anything
// else.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "rondo/kernels/team.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo {

struct RuntimeOptions {
  int64_t threads = 0;  // 0 = one per core this process may use
  nn::Kernels kernels = nn::Kernels::fused;
};

class Runtime {
 public:
  // Throws Error if the threads or their memory are not available. May be called again to change
  // the options.
  static Runtime& start(const RuntimeOptions& options);
  static Runtime& get();

  int threads() const { return threads_; }
  void use_threads(int threads);

  // Exclusive use of all threads; others wait, first come, first served.
  class Turn {
   public:
    explicit Turn(Runtime& runtime);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    kernels::Team& team() const { return *runtime_.team_; }
    // Runs `work`, which uses torch, on the runtime's own thread and waits for it: torch's OpenMP
    // starts a thread team for every calling thread. Throws what `work` throws.
    void compute(const std::function<void()>& work) const { runtime_.run_on_worker(work); }

   private:
    Runtime& runtime_;
  };
  // The same, taking a turn for it.
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

  // The thread that runs torch; all guarded by mutex_.
  std::thread worker_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace rondo
