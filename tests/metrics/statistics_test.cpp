// Intervals and tests against values computed by scipy 1.17 (scipy.stats) and R.
#include "rondo/metrics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rondo {
namespace {

TEST(Statistics, StudentQuantilesAreThoseOfEveryTable) {
  // scipy.stats.t.ppf(0.975, df)
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706204736174694, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.302652729749462, 1e-10);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.7764451051977934, 1e-10);
  EXPECT_NEAR(student_quantile(0.975, 30), 2.0422724563012378, 1e-10);
  EXPECT_NEAR(student_quantile(0.025, 4), -2.7764451051977934, 1e-10);
  EXPECT_NEAR(student_quantile(0.5, 7), 0, 1e-10);
}

TEST(Statistics, StudentCdf) {
  // With one degree of freedom it is Cauchy's: 1/2 + atan(t)/π.
  for (const double t : {-3.0, -0.5, 0.0, 0.2, 1.0, 40.0}) {
    EXPECT_NEAR(student_cdf(t, 1), 0.5 + std::atan(t) / M_PI, 1e-13);
    // With two: 1/2 + t / (2 sqrt(2 + t²)).
    EXPECT_NEAR(student_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-13);
  }
}

TEST(Statistics, MeanIntervalOfThreeSeeds) {
  const MeanInterval m = mean_interval({1.0, 2.0, 3.0});
  EXPECT_EQ(m.count, 3);
  EXPECT_DOUBLE_EQ(m.mean, 2.0);
  // 4.302653 · 1 / sqrt(3)
  EXPECT_NEAR(m.high - m.mean, 2.484137712, 1e-8);
  EXPECT_NEAR(m.mean - m.low, 2.484137712, 1e-8);
}

TEST(Statistics, OneNumberHasNoInterval) {
  const MeanInterval m = mean_interval({5.0});
  EXPECT_EQ(m.mean, 5.0);
  EXPECT_TRUE(std::isinf(m.low) && std::isinf(m.high));
}

// "Student" (1908): extra hours of sleep by two drugs, the example of R's t.test(paired = TRUE):
// t = -4.0621, df = 9, p-value = 0.002833, interval [-2.4598858, -0.7001142].
TEST(Statistics, PairedTestOfStudentsSleepData) {
  const std::vector<double> one = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> two = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedTest test = paired_t_test(one, two);
  EXPECT_NEAR(test.difference.mean, -1.58, 1e-12);
  EXPECT_NEAR(test.difference.low, -2.4598858, 1e-6);
  EXPECT_NEAR(test.difference.high, -0.7001142, 1e-6);
  EXPECT_NEAR(test.p_value, 0.00283289, 1e-7);
}

TEST(Statistics, EqualDifferencesLeaveNoDoubt) {
  EXPECT_EQ(paired_t_test({2, 3}, {1, 2}).p_value, 0);
  EXPECT_EQ(paired_t_test({2, 3}, {2, 3}).p_value, 1);
}

TEST(Statistics, WilsonIntervals) {
  // Newcombe (1998), Table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
  EXPECT_NEAR(wilson_interval(81, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(wilson_interval(81, 263).high, 0.3662, 5e-5);
  EXPECT_NEAR(wilson_interval(15, 148).low, 0.0624, 5e-5);
  EXPECT_NEAR(wilson_interval(15, 148).high, 0.1605, 5e-5);
  EXPECT_NEAR(wilson_interval(0, 20).low, 0.0, 1e-12);
  EXPECT_NEAR(wilson_interval(0, 20).high, 0.1611, 5e-5);
  EXPECT_NEAR(wilson_interval(1, 29).high, 0.1718, 5e-5);
}

TEST(Statistics, McNemarIsTheBinomialTest) {
  // By hand: 2 · (1 + 8 + 28) / 256 and 2 · 1 / 32; equal counts give p = 1.
  EXPECT_NEAR(mcnemar_p_value(2, 6), 74.0 / 256.0, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(5, 0), 2.0 / 32.0, 1e-12);
  EXPECT_EQ(mcnemar_p_value(7, 7), 1.0);
  EXPECT_EQ(mcnemar_p_value(0, 0), 1.0);
}

}  // namespace
}  // namespace rondo
