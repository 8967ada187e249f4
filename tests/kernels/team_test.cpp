// Threads that work together: no thread is missed or runs ahead, and sleeping threads are woken.
#include "rondo/kernels/team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>

namespace rondo::test {
namespace {

// A team under a limit with room for about two more stacks; 0 if it is smaller than requested and
// works.
[[noreturn]] void try_large_team() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit limit {};
  limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(pages * 4096 + (int64_t{24} << 20));
  setrlimit(RLIMIT_AS, &limit);
  kernels::Team team(64);
  std::atomic<int> worked{0};
  team.run(64, [&](int) { ++worked; });
  std::_Exit(team.size() < 64 && worked == team.size() ? 0 : 1);
}

TEST(TeamWork, WithoutRoomForThreadsItIsSmaller) {
  EXPECT_EXIT(try_large_team(), ::testing::ExitedWithCode(0), "");
}

// Every member writes its number, waits for all, and adds up what all wrote; repeated many times
// with changing numbers of members.
TEST(TeamWork, MembersSeeWhatOthersDidBeforeTheyMet) {
  constexpr int kThreads = 3;  // more than this machine may have cores
  kernels::Team team(kThreads);
  EXPECT_EQ(team.size(), kThreads);
  for (int round = 1; round <= 3000; ++round) {
    const int members = 1 + round % kThreads;
    int written[kThreads] = {0, 0, 0};
    int sums[kThreads] = {0, 0, 0};
    team.run(members, [&](int member) {
      for (int part = 0; part < 3; ++part) {
        written[member] = round * (member + 1) + part;
        team.barrier();
        sums[member] = 0;
        for (int other = 0; other < members; ++other) sums[member] += written[other];
        team.barrier();
      }
    });
    int want = 0;
    for (int member = 0; member < members; ++member) want += round * (member + 1) + 2;
    for (int member = 0; member < kThreads; ++member) {
      ASSERT_EQ(sums[member], member < members ? want : 0) << "round " << round;
    }
  }
}

TEST(TeamWork, SleepersAreWoken) {
  kernels::Team team(2);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // far longer than threads spin
    std::atomic<int> seen{0};
    team.run(2, [&](int) { ++seen; });
    EXPECT_EQ(seen, 2);
  }
}

TEST(TeamWork, AskingForMoreThanThereAreGivesAll) {
  kernels::Team team(2);
  std::atomic<int> seen{0};
  team.run(9, [&](int) { ++seen; });
  EXPECT_EQ(seen, 2);
  team.run(0, [&](int) { ++seen; });
  EXPECT_EQ(seen, 3);
}

// The number of threads chosen after trials in which one thread takes `one` and all take `all`.
int chosen_after(double one, double all, int steps) {
  kernels::ThreadChoice choice;
  choice.allow(2);
  for (int i = 0; i < steps; ++i) choice.took(choice.threads() == 1 ? one : all);
  return choice.threads();
}

TEST(TeamChoice, TakesWhatIsFaster) {
  EXPECT_EQ(chosen_after(2.0, 1.1, 100), 2);
  EXPECT_EQ(chosen_after(1.0, 1.1, 100), 1);
}

TEST(TeamChoice, IsMadeAgain) {
  kernels::ThreadChoice choice;
  choice.allow(2);
  double one = 2.0;
  double all = 1.0;
  bool changed = false;
  for (int i = 0; i < 40000; ++i) {
    if (i == 10000) all = 3.0;  // another process took the other core
    choice.took(choice.threads() == 1 ? one : all);
    changed = changed || (i > 10100 && choice.threads() == 1);
  }
  EXPECT_TRUE(changed);
  EXPECT_EQ(choice.threads(), 1);
}

TEST(TeamChoice, OfOneThreadIsOne) {
  kernels::ThreadChoice choice;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(choice.threads(), 1);
    choice.took(1.0);
  }
}

}  // namespace
}  // namespace rondo::test
