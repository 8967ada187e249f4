// A few threads that run one function together thousands of times a second and meet inside it: what
// reading one token at a time needs, where starting a parallel region costs as much as a layer.
// Waiting threads spin for a moment and then sleep or give way, so that a busy machine is not made
// busier. No torch here.
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
  // Starts threads - 1 threads, or as many as the system gives; the caller of run() is the other
  // one.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Calls work(member) for members 0 … members - 1 at once and returns when all are done. `work`
  // must not throw.
  void run(int members, const std::function<void(int member)>& work);
  // Inside work: waits until every member is here.
  void barrier();

 private:
  void serve(int member);

  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;
  int members_ = 1;  // of the present run; only its members may look
  // Number of the run, and below it in kMemberBits how many take part: one look tells both.
  std::atomic<uint64_t> call_{0};
  std::atomic<bool> closing_{false};
  std::atomic<int> arrived_{0};
  std::atomic<uint64_t> meeting_{0};
  std::atomic<int> asleep_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

// One member's place in a run.
struct Member {
  Team* team = nullptr;
  int index = 0;
  int count = 1;

  // Of `items` pieces of work, the member's: [first, last).
  std::pair<int64_t, int64_t> share(int64_t items) const {
    return {items * index / count, items * (index + 1) / count};
  }
  void barrier() const {
    if (count > 1) team->barrier();
  }
};

// How many threads are worth it, found by trying: a few steps with one, a few with all, now and
// then again, because the machine's other work comes and goes.
class ThreadChoice {
 public:
  // At most so many; the same number again changes nothing.
  void allow(int most);
  // For the next step; tell what it took.
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
