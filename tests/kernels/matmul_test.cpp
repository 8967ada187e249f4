// Products of rows, by tiles and by gemm, against sums in double over odd shapes.
#include "rondo/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/tile_test_util.h"

namespace rondo::kernels {
namespace {

struct RowCase {
  int64_t rows, k, n;
};
constexpr RowCase kRowCases[] = {{1, 1, 1},      {3, 7, 5},       {31, 2, 33},    {33, 31, 17},
                                 {64, 64, 64},   {100, 130, 257}, {17, 32, 40},   {70, 96, 33},
                                 {600, 64, 100}, {257, 256, 32},  {1000, 40, 513}};

struct RowProblem {
  RowProblem(const RowCase& given, bool turned)
      : c(given),
        transposed(turned),
        a(drawn_numbers<Bf16>(c.rows * c.k, 1)),
        b(drawn_numbers<Bf16>(c.k * c.n, 2)),
        more(drawn_numbers<Bf16>(c.rows * c.k, 3)),
        bias(static_cast<size_t>(c.n)) {
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = 0.01F * static_cast<float>(i % 7);
  }
  // scale · (a + more) · b + bias, with the second term in the same sums.
  double want(int64_t row, int64_t column, double scale) const {
    double sum = 0.0;
    for (int64_t i = 0; i < c.k; ++i) {
      const auto at = static_cast<size_t>(row * c.k + i);
      const Bf16 right = b[static_cast<size_t>(transposed ? column * c.k + i : i * c.n + column)];
      sum += (static_cast<double>(widen(a[at])) + static_cast<double>(widen(more[at]))) *
             static_cast<double>(widen(right));
    }
    return scale * sum + static_cast<double>(bias[static_cast<size_t>(column)]);
  }
  RowCase c;
  bool transposed;
  std::vector<Bf16> a, b, more;
  std::vector<float> bias;
};

class RowProducts : public TilesOrGemm {};
INSTANTIATE_TEST_SUITE_P(Tiles, RowProducts, ::testing::Bool());

TEST_P(RowProducts, EqualSumsInDouble) {
  for (const RowCase& c : kRowCases) {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(c.rows * 1000000 + c.k * 1000 + c.n);
      const RowProblem p(c, transposed);
      const RightMatrix right(p.b.data(), c.k, c.n, transposed);
      std::vector<float> exact(static_cast<size_t>(c.rows * c.n), NAN);
      std::vector<Bf16> rounded(exact.size());
      std::vector<float> twice(exact.size(), NAN);
      RowResults to;
      to.bias = p.bias.data();
      to.scale = 0.5F;
      to.exact = exact.data();
      std::vector<int> told(static_cast<size_t>(c.rows));
      matmul({{p.a.data(), &right}, {p.more.data(), &right}}, c.rows, to,
             [&](int64_t first, int64_t last) {
               for (int64_t r = first; r < last; ++r) ++told[static_cast<size_t>(r)];
             });
      to.exact = nullptr;
      to.rounded = rounded.data();
      matmul({{p.a.data(), &right}, {p.more.data(), &right}}, c.rows, to);
      to.rounded = nullptr;
      to.exact = twice.data();
      to.addend = exact.data();
      matmul({{p.a.data(), &right}, {p.more.data(), &right}}, c.rows, to);
      for (int64_t r = 0; r < c.rows; ++r) {
        EXPECT_EQ(told[static_cast<size_t>(r)], 1);
        for (int64_t i = 0; i < c.n; i += 1 + c.n / 40) {
          const auto at = static_cast<size_t>(r * c.n + i);
          const double want = p.want(r, i, 0.5);
          ASSERT_NEAR(static_cast<double>(exact[at]), want, 2e-5) << r << ' ' << i;
          ASSERT_NEAR(static_cast<double>(widen(rounded[at])), want, 2e-5 + std::abs(want) / 250);
          ASSERT_NEAR(static_cast<double>(twice[at]), 2.0 * want, 4e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rondo::kernels
