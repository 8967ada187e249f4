// Intervals and tests for results given as a few numbers (one per seed) or as counts (right and
// wrong answers). Resampling over test items is in bootstrap.h.
#pragma once

#include <cstdint>
#include <vector>

namespace rondo {

// P(T <= t) of Student's distribution with `freedom` > 0 degrees of freedom.
double student_cdf(double t, double freedom);
// The t with P(T <= t) = probability, for a probability strictly between 0 and 1.
double student_quantile(double probability, double freedom);

struct MeanInterval {
  int64_t count = 0;
  double mean = 0;
  double low = 0;  // bounds of the 95 % interval; infinite with fewer than two numbers
  double high = 0;
};

// The mean of independent numbers, with its 95 % interval by Student's distribution.
MeanInterval mean_interval(const std::vector<double>& values);

struct PairedTest {
  MeanInterval difference;  // of a - b, per pair
  double p_value = 1;       // two-sided; 1 with fewer than two pairs
};

// Student's paired t-test. `a` and `b` have the same length.
PairedTest paired_t_test(const std::vector<double>& a, const std::vector<double>& b);

struct Proportion {
  double low = 0;
  double high = 1;
};

// Wilson's 95 % interval for `right` successes in `count` trials; [0, 1] without trials.
Proportion wilson_interval(int64_t right, int64_t count);

// McNemar's exact test: `only_a` items were classified correctly only by the first classifier,
// `only_b` only by the second. Two-sided p-value.
double mcnemar_p_value(int64_t only_a, int64_t only_b);

}  // namespace rondo
