// The gradient check itself: it accepts correct gradients and reports wrong ones.
#include "tests/support/gradcheck.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace rondo::test {
namespace {

TEST(Gradcheck, AcceptsSmallAndLargeTensors) {
  const Tensor small = variable({3}, 1);
  const Tensor large = variable({5, 20}, 2);
  gradcheck([&] { return small.sin().sum() * large.exp(); }, {{"small", small}, {"large", large}});
}

// Used by the checks below: half of x's influence is hidden from autograd.
void check_half_detached(int64_t entries) {
  const Tensor x = variable({entries}, 1);
  gradcheck([&] { return x.sin() + x.detach().sin(); }, {{"x", x}});
}

// The last of many entries is wrong: single entries may miss it, random directions do not.
void check_one_wrong_entry() {
  const Tensor x = variable({100}, 1);
  gradcheck(
      [&] {
        return at::cat({x.narrow(0, 0, 99), x.narrow(0, 99, 1).detach()}).sin();
      },
      {{"x", x}});
}

TEST(Gradcheck, ReportsWrongGradients) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    check_half_detached(3);
    EXPECT_EQ(results.size(), 3);
    check_half_detached(30);
    check_one_wrong_entry();
  }
  // 3 entries; 8 entries and 2 directions; 2 directions.
  EXPECT_EQ(results.size(), 3 + 10 + 2);
}

TEST(Gradcheck, ReportsWhatHasNoGradientAtAll) {
  EXPECT_NONFATAL_FAILURE(
      {
        const Tensor x = variable({2}, 1);
        gradcheck([&] { return x * 0.0; }, {{"x", x}});
      },
      "no variable has any gradient");
}

}  // namespace
}  // namespace rondo::test
