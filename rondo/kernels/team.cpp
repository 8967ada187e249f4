// Thread team.
#include "rondo/kernels/team.h"

#include <algorithm>
#include <exception>

namespace rondo::kernels {
namespace {

// Polls before yielding: some tens of microseconds, longer than a running thread takes for its
// share of a layer.
constexpr int kLooks = 2000;
constexpr unsigned kMemberBits = 16;
// The caller samples and prints between tokens, so waiting for work polls longer.
constexpr int kLooksForWork = 4 * kLooks;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

template <class Condition>
bool spin_until(int looks, const Condition& condition) {
  for (int i = 0; i < looks; ++i) {
    if (condition()) return true;
    pause_briefly();
  }
  return false;
}

}  // namespace

Team::Team(int threads) {
  try {
    for (int member = 1; member < threads; ++member) {
      threads_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::exception&) {  // no more threads available: use a smaller team
  }
}

Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(int members, const std::function<void(int)>& work) {
  members = std::clamp(members, 1, size());
  members_ = members;
  if (members == 1) return work(0);
  work_ = &work;
  const uint64_t number = (call_.load(std::memory_order_relaxed) >> kMemberBits) + 1;
  call_.store(number << kMemberBits | static_cast<uint64_t>(members));
  if (asleep_.load() > 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  work(0);
  barrier();  // no member may still be reading `work` on return
}

void Team::barrier() {
  const int members = members_;
  if (members == 1) return;
  const uint64_t now = meeting_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    arrived_.store(0, std::memory_order_relaxed);
    meeting_.store(now + 1, std::memory_order_release);
    return;
  }
  const auto over = [&] { return meeting_.load(std::memory_order_acquire) != now; };
  while (!spin_until(kLooks, over)) std::this_thread::yield();
}

void Team::serve(int member) {
  uint64_t seen = 0;
  for (;;) {
    const auto called = [&] { return call_.load() != seen || closing_.load(); };
    if (!spin_until(kLooksForWork, called)) {
      std::unique_lock<std::mutex> lock(mutex_);
      asleep_.fetch_add(1);
      wake_.wait(lock, called);
      asleep_.fetch_sub(1);
    }
    if (closing_) return;
    seen = call_.load();
    if (static_cast<uint64_t>(member) >= (seen & ((1U << kMemberBits) - 1))) continue;
    (*work_)(member);
    barrier();
  }
}

void ThreadChoice::allow(int most) {
  if (most == most_) return;
  *this = ThreadChoice();
  most_ = most;
}

int ThreadChoice::threads() const {
  if (most_ == 1) return 1;
  if (step_ < kTries) return 1;
  return step_ < 2 * kTries ? most_ : chosen_;
}

void ThreadChoice::took(double seconds) {
  if (most_ == 1) return;
  if (step_ < 2 * kTries) {
    double& best = best_[step_ < kTries ? 0 : 1];
    if (step_ % kTries == 0 || seconds < best) best = seconds;
  }
  ++step_;
  if (step_ == 2 * kTries) chosen_ = best_[1] < best_[0] ? most_ : 1;
  if (step_ == kBetween) step_ = 0;
}

}  // namespace rondo::kernels
