// Appending lines to a file: each is written whole or not at all, and errors give the system's
// reason.
#include "rondo/base/append_file.h"

#include <sys/resource.h>

#include <cerrno>
#include <csignal>

#include "rondo/base/throttle.h"
#include "tests/base/base_test_util.h"

namespace rondo::testing {
namespace {

TEST(AppendWhole, AddsToTheEnd) {
  const TempDir folder;
  EXPECT_EQ(append_whole(folder.file("log"), "one\n"), 0);
  EXPECT_EQ(append_whole(folder.file("log"), "two\n"), 0);
  EXPECT_EQ(slurp(folder.file("log")), "one\ntwo\n");
}

TEST(AppendWhole, GivesTheReason) {
  const TempDir folder;
  EXPECT_EQ(append_whole(folder.path(), "x"), EISDIR);
  EXPECT_EQ(append_whole(folder.file("nowhere/log"), "x"), ENOENT);
  EXPECT_EQ(append_whole("/dev/full", "x"), ENOSPC);
}

// The limit falls inside the line, so the system would write half of it.
TEST(AppendWhole, TakesBackHalfALine) {
  const TempDir folder;
  spill(folder.file("log"), std::string(1000, 'a') + "\n");
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit limit = before;
  limit.rlim_cur = 1500;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  const int reason = append_whole(folder.file("log"), std::string(1000, 'b') + "\n");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(reason, EFBIG);
  EXPECT_EQ(slurp(folder.file("log")), std::string(1000, 'a') + "\n");
}

TEST(Throttle, LetsOneThroughInAMinute) {
  Throttle throttle(std::chrono::seconds(60));
  const Throttle::Clock::time_point begin{};
  const auto due = [&](int seconds) { return throttle.due(begin + std::chrono::seconds(seconds)); };
  EXPECT_TRUE(due(0));
  EXPECT_FALSE(due(1));
  EXPECT_FALSE(due(59));
  EXPECT_TRUE(due(60));
  EXPECT_FALSE(due(119));
  EXPECT_TRUE(due(300));
}

}  // namespace
}  // namespace rondo::testing
