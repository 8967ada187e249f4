// Tests of rondo/base/error.h.
#include "rondo/base/error.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

TEST(ErrorTest, KeepsItsParts) {
  const Error error(ExitCode::io, "disk: cannot write", "free some space");
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_EQ(error.message(), "disk: cannot write");
  EXPECT_EQ(error.advice(), "free some space");
  EXPECT_STREQ(error.what(), "disk: cannot write\n  free some space");
}

TEST(ErrorTest, WithoutAdviceSaysOnlyTheMessage) {
  const Error error(ExitCode::usage, "no such verb");
  EXPECT_STREQ(error.what(), "no such verb");
  EXPECT_EQ(error.advice(), "");
}

TEST(ErrorTest, IsAnExceptionAndSurvivesCopying) {
  try {
    const Error original(ExitCode::bad_input, "a", "b");
    throw Error(original);
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "a\n  b");
  }
}

TEST(ErrorTest, ExitCodesAreTheDocumentedNumbers) {
  EXPECT_EQ(static_cast<int>(ExitCode::ok), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::failure), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::usage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::bad_input), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::io), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::diverged), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::busy), 6);
}

TEST(ErrorTest, AssertPassesAndEvaluatesOnce) {
  int calls = 0;
  RONDO_ASSERT(++calls == 1);
  EXPECT_EQ(calls, 1);
}

TEST(ErrorDeathTest, AssertNamesTheExpressionAndPlace) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const int width = 3;
  EXPECT_DEATH(RONDO_ASSERT(width == 4), "error_test.cpp:[0-9]+: assertion failed: width == 4");
}

}  // namespace
}  // namespace rondo
