// A small thread team that runs one function thousands of times per second with barriers inside: in
// token-by-token decoding, starting a parallel region costs as much as a layer. Waiting threads
// spin briefly, then sleep or yield, so as not to load a busy machine further. No torch dependency.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::kernels {

class Team {
 public:
  // Starts threads - 1 threads, or as many as the system allows; the caller of run() is the
  // remaining one.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Calls work(member) concurrently for members 0 … members - 1 and returns when all are done.
  // `work` must not throw.
  void run(int members, const std::function<void(int member)>& work);
  // Called inside work: waits until every member arrives.
  void barrier();

 private:
  void serve(int member);

  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;
  int members_ = 1;  // of the current run; only its members may read it
  // Run number, and in the low kMemberBits the number of members: one load gives both.
  std::atomic<uint64_t> call_{0};
  std::atomic<bool> closing_{false};
  std::atomic<int> arrived_{0};
  std::atomic<uint64_t> meeting_{0};
  std::atomic<int> asleep_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

// One member's role in a run.
struct Member {
  Team* team = nullptr;
  int index = 0;
  int count = 1;

  // This member's share [first, last) of `items` work items.
  std::pair<int64_t, int64_t> share(int64_t items) const {
    return {items * index / count, items * (index + 1) / count};
  }
  void barrier() const {
    if (count > 1) team->barrier();
  }
};

// Finds the best number of threads by trial: a few steps with one, a few with all, repeated now and
// then because the load on the machine changes.
class ThreadChoice {
 public:
  // Upper limit; setting the same limit again has no effect.
  void allow(int most);
  // Threads to use for the next step; report its duration with took().
  int threads() const;
  void took(double seconds);

 private:
  static constexpr int64_t kTries = 12;         // steps of each kind in a trial
  static constexpr int64_t kBetween = 1 << 11;  // steps from one trial to the next

  int most_ = 1;
  int chosen_ = 1;
  int64_t step_ = 0;             // since the trial began
  double best_[2] = {0.0, 0.0};  // fastest step with one thread and with all
};

}  // namespace rondo::kernels
