// Signals in the middle of matrix products, whose code uses the stack pointer for something else:
// nothing of the data may be written over.
#include "rondo/train/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "rondo/kernels/gemm.h"

namespace rondo::test {
namespace {

TEST(StopSignals, LeaveMatrixProductsAlone) {
  kernels::prepare_tiles();
  StopSignals signals;
  kernels::Product p;
  p.transpose_a = true;
  p.m = 256;
  p.n = 48;
  p.k = 160;  // small enough to be oneDNN's on every CPU
  const std::vector<float> a(static_cast<size_t>(p.m * p.k), 0.5F);
  const std::vector<float> b(static_cast<size_t>(p.n * p.k), 0.25F);
  const std::vector<float> want(static_cast<size_t>(p.m * p.n), 0.125F * static_cast<float>(p.k));
  std::atomic<bool> done{false};
  std::thread sender([&] {
    for (int i = 0; i < 3000; ++i) {
      kill(getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    done = true;
  });
  int64_t saves = 0;
  bool same = true;
  while (!done) {
    std::vector<float> c(want.size());
    kernels::gemm(p, a.data(), b.data(), c.data());
    same = same && c == want && a == std::vector<float>(a.size(), 0.5F) &&
           b == std::vector<float>(b.size(), 0.25F);
    saves += signals.take_save_request() ? 1 : 0;
  }
  sender.join();
  EXPECT_TRUE(same);
  EXPECT_GT(saves, 0);
}

}  // namespace
}  // namespace rondo::test
