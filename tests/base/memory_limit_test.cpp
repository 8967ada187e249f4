// Limits of memory and threads: what is rejected, and that the message gives the reason.
#include "rondo/base/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;

constexpr int64_t kMiB = int64_t{1} << 20;

// Runs in a child process with a limit of `mib`; the text of what `action` throws goes to stderr.
template <class Action>
[[noreturn]] void limited(int resource, int64_t mib, const Action& action) {
  const auto bytes = static_cast<rlim_t>(mib * kMiB);
  const struct rlimit limit = {bytes, bytes};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  try {
    action();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(static_cast<int>(error.code()));
  }
  std::_Exit(0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO_UNDER_ASAN 1  // its shadow memory exceeds any limit
#endif
#endif

TEST(MemoryLimit, ProductsDoNotOverflow) {
  EXPECT_EQ(saturating_product(3, 4), 12);
  EXPECT_EQ(saturating_product(3, 4, 5), 60);
  EXPECT_EQ(saturating_product(int64_t{1} << 40, int64_t{1} << 40), INT64_MAX);
  EXPECT_EQ(saturating_product(int64_t{1} << 31, int64_t{1} << 31, 4), INT64_MAX);
  EXPECT_EQ(saturating_product(0, INT64_MAX, 9), 0);
}

TEST(MemoryLimit, NamesWhatIsInTheWay) {
  const int64_t most = memory_limit().bytes;
  EXPECT_GT(most, 64 * kMiB);
  require_memory(most, "all of it", "");
  const Error error = error_of([] { require_memory(INT64_MAX, "a batch", "choose less"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message().rfind("a batch: needs more than 8 EiB of memory, more than ", 0), 0U)
      << error.what();
  EXPECT_EQ(error.advice(), "choose less");
}

#ifndef RONDO_UNDER_ASAN
TEST(MemoryLimit, KnowsTheShells) {
  EXPECT_EXIT(limited(RLIMIT_DATA, 100, [] { require_memory(200 * kMiB, "x", ""); }),
              ::testing::ExitedWithCode(3),
              "x: needs 200 MiB of memory, more than ulimit -d \\(100 MiB\\)");
  EXPECT_EXIT(limited(RLIMIT_AS, 300, [] { require_engine_room(1); }), ::testing::ExitedWithCode(1),
              "ulimit -v: the limit is 300 MiB, but computing with 1 thread needs 872 MiB");
  EXPECT_EXIT(limited(RLIMIT_AS, 1150,
                      [] {
                        if (threads_with_room(64) != 3) std::_Exit(9);
                        require_engine_room(3);
                        require_engine_room(4);
                      }),
              ::testing::ExitedWithCode(1), "4 threads needs 1.25 GiB\n.*use fewer threads");
}
#endif

TEST(MemoryLimit, ThreadsAreComparedWithCores) {
  check_threads(0, "k");
  check_threads(4 * usable_cores(), "k");
  check_threads(16, "k");
  const Error error = error_of([] { check_threads(16 * usable_cores() + 1, "train.threads"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message().rfind("train.threads: expected at most ", 0), 0U) << error.what();
}

}  // namespace
}  // namespace rondo
