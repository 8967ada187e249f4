// Student's distribution by the incomplete beta function, and the tests built on it.
#include "rondo/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/base/require.h"

namespace rondo {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-15;
  constexpr int kMaxTerms = 10000;
  const auto guarded = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / guarded(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    const double change = d * c;
    result *= change;
    if (std::abs(change - 1) < kPrecision) break;
  }
  return result;
}

// I_x(a, b), regularized.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges quickly below the mean; above it, its mirror image does.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_cdf(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  const double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double probability, double freedom) {
  require(
      probability > 0 && probability < 1 && freedom > 0,
      "t distribution: expected a probability between 0 and 1 and degrees of freedom above 0, got "
      "{} and {}",
      probability, freedom);
  if (probability < 0.5) return -student_quantile(1 - probability, freedom);
  double low = 0;
  double high = 1;
  while (student_cdf(high, freedom) < probability && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_cdf(middle, freedom) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

MeanInterval mean_interval(const std::vector<double>& values) {
  MeanInterval result;
  result.count = static_cast<int64_t>(values.size());
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += v;
  result.mean = sum / n;
  double half = std::numeric_limits<double>::infinity();
  if (values.size() > 1) {
    double squares = 0;
    for (const double v : values) squares += (v - result.mean) * (v - result.mean);
    half = student_quantile(0.975, n - 1) * std::sqrt(squares / (n - 1) / n);
  }
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

PairedTest paired_t_test(const std::vector<double>& a, const std::vector<double>& b) {
  require(a.size() == b.size(), "t-test: expected pairs of values, got {} and {}", a.size(),
          b.size());
  std::vector<double> differences;
  for (size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  PairedTest test;
  test.difference = mean_interval(differences);
  if (differences.size() < 2) return test;
  const auto freedom = static_cast<double>(differences.size() - 1);
  const double half = test.difference.high - test.difference.mean;
  if (half == 0) {  // all differences are equal: no variance to compare with
    test.p_value = test.difference.mean == 0 ? 1 : 0;
    return test;
  }
  const double t = test.difference.mean * student_quantile(0.975, freedom) / half;
  test.p_value = 2 * student_cdf(-std::abs(t), freedom);
  return test;
}

Proportion wilson_interval(int64_t right, int64_t count) {
  if (count <= 0) return {};
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(count);
  const double p = static_cast<double>(right) / n;
  const double center = p + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {std::max(0.0, (center - half) / scale), std::min(1.0, (center + half) / scale)};
}

double mcnemar_p_value(int64_t only_a, int64_t only_b) {
  const int64_t n = only_a + only_b;
  if (n == 0) return 1;
  // P(X <= least) of Binomial(n, 1/2), as an incomplete beta function.
  const int64_t least = std::min(only_a, only_b);
  const double tail =
      incomplete_beta(static_cast<double>(n - least), static_cast<double>(least + 1), 0.5);
  return std::min(1.0, 2 * tail);
}

}  // namespace rondo
