// Sums of outer products, by tiles and by gemm, against sums in double over odd shapes.
#include "rondo/kernels/weight_gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/tile_test_util.h"

namespace rondo::kernels {
namespace {

// Widths of 1,024 floats are a page: columns collide in the cache. 5,000 rows are several chunks of
// tiles. The last ones, with many columns for few rows, are transposed.
const WeightGradientShape kOuterCases[] = {
    {1, 1, 1},       {3, 7, 5},      {31, 2, 33},    {33, 31, 17},   {64, 64, 64},
    {100, 230, 64},  {70, 96, 33},   {257, 32, 256}, {65, 1024, 48}, {65, 48, 1024},
    {7, 1024, 1024}, {5000, 40, 35}, {300, 20, 70},  {5000, 33, 130}};

template <class Number>
void compare_weight_gradient() {
  for (WeightGradientShape p : kOuterCases) {
    SCOPED_TRACE(p.rows * 100000000 + p.n * 10000 + p.k);
    const auto a = drawn_numbers<Number>(p.rows * p.n, 1);
    const auto b = drawn_numbers<Number>(p.rows * p.k, 2);
    p.scale = 0.5F;
    std::vector<float> c(static_cast<size_t>(p.n * p.k), NAN);
    weight_gradient(p, a.data(), b.data(), c.data());
    std::vector<float> twice = c;
    p.add = true;
    weight_gradient(p, a.data(), b.data(), twice.data());
    for (int64_t i = 0; i < p.n; i += 1 + p.n / 50) {
      for (int64_t j = 0; j < p.k; j += 1 + p.k / 50) {
        double want = 0;
        for (int64_t r = 0; r < p.rows; ++r) {
          want += 0.5 * static_cast<double>(widen(a[static_cast<size_t>(r * p.n + i)])) *
                  static_cast<double>(widen(b[static_cast<size_t>(r * p.k + j)]));
        }
        const auto at = static_cast<size_t>(i * p.k + j);
        ASSERT_NEAR(static_cast<double>(c[at]), want, 1e-4) << i << ' ' << j;
        ASSERT_NEAR(static_cast<double>(twice[at]), 2 * want, 2e-4) << i << ' ' << j;
      }
    }
  }
}

class Outer : public TilesOrGemm {};
INSTANTIATE_TEST_SUITE_P(Tiles, Outer, ::testing::Bool());

TEST_P(Outer, ProductsOfBf16EqualSumsInDouble) { compare_weight_gradient<Bf16>(); }
TEST_P(Outer, ProductsEqualSumsInDouble) { compare_weight_gradient<float>(); }

}  // namespace
}  // namespace rondo::kernels
