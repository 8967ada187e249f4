// Tests of rondo/base/log.h: what is shown, where, and at which verbosity.
#include "rondo/base/log.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

std::string logged_at(int verbosity) {
  init_log(verbosity);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  log_debug("detail {}", 1);
  log_info("step {}", 2);
  log_warn("slow {}", 3);
  log_error("bad {}", 4);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");  // stdout is for data
  std::string text = ::testing::internal::GetCapturedStderr();
  init_log(0);
  return text;
}

TEST(LogTest, VerbosityChoosesLevelsAndAPipeGetsNoColor) {
  EXPECT_EQ(logged_at(-2), "error: bad 4\n");
  EXPECT_EQ(logged_at(-1), "warning: slow 3\nerror: bad 4\n");
  EXPECT_EQ(logged_at(0), "info: step 2\nwarning: slow 3\nerror: bad 4\n");
  EXPECT_EQ(logged_at(1), "debug: detail 1\ninfo: step 2\nwarning: slow 3\nerror: bad 4\n");
  EXPECT_EQ(logged_at(99), logged_at(1));
  EXPECT_EQ(logged_at(-99), logged_at(-2));
}

TEST(LogTest, MessagesAreNotFormatStrings) {
  init_log(0);
  ::testing::internal::CaptureStderr();
  log_message(LogLevel::info, "100 {} %s");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "info: 100 {} %s\n");
}

}  // namespace
}  // namespace rondo
