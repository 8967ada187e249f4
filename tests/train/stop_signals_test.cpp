// Signals during matrix products, whose code uses the stack pointer for data: nothing may be
// overwritten.
#include "rondo/train/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "rondo/kernels/amx.h"
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
  p.k = 160;  // small enough for oneDNN on every CPU
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

// nohup, and background jobs of a shell without job control, start with ignored signals.
TEST(StopSignals, LeaveIgnoredOnesIgnored) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    std::signal(signal, SIG_IGN);
    {
      StopSignals signals;
      std::raise(signal);
      EXPECT_EQ(signals.stop_code(), 0) << signal;
      EXPECT_FALSE(signals.take_save_request()) << signal;
    }
    EXPECT_EQ(std::signal(signal, SIG_DFL), SIG_IGN) << signal;
  }
}

TEST(StopSignals, GiveTheExitCode) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const StopSignals signals;
    EXPECT_EQ(signals.stop_code(), 0);
    std::raise(signal);
    EXPECT_EQ(signals.stop_code(), 128 + signal);
  }
}

// As in the command's start-up.
TEST(StopSignals, TakeUpASaveThatWaited) {
  sigset_t save = {};
  sigemptyset(&save);
  sigaddset(&save, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &save, nullptr);
  std::raise(SIGUSR1);
  {
    StopSignals signals;
    EXPECT_TRUE(signals.take_save_request());
    EXPECT_FALSE(signals.take_save_request());
  }
  sigset_t now = {};
  pthread_sigmask(SIG_UNBLOCK, &save, &now);
  EXPECT_EQ(sigismember(&now, SIGUSR1), 1) << "as it was before";
}

}  // namespace
}  // namespace rondo::test
