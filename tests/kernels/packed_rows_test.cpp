// Rows times packed weights against sums in double, over odd shapes and for every CPU target;
// results do not depend on how the work is divided.
#include "rondo/kernels/packed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/one_row_test_util.h"

namespace rondo::test {
namespace {

struct Problem {
  int64_t rows, out, in;
  Numbers w, x, bias;
};

Problem random_problem(int64_t rows, int64_t out, int64_t in) {
  return {rows,
          out,
          in,
          random_numbers(out * in, 31),
          random_numbers(rows * in, 32),
          random_numbers(out, 33)};
}

constexpr kernels::PackedFormat kRowFormats[] = {
    kernels::PackedFormat::fp32, kernels::PackedFormat::bf16, kernels::PackedFormat::int8};

// Split into panels [0, middle) and [middle, all); what follows y must not be touched.
Numbers product(const Problem& p, kernels::PackedFormat format, bool biased, bool cut) {
  constexpr float kUntouched = 12345.0F;
  kernels::PageArena arena;
  const kernels::PackedMatrix m = kernels::pack(p.w.data(), p.out, p.in, format, arena);
  Numbers y(static_cast<size_t>(p.rows * p.out + 16), kUntouched);
  const int64_t middle = cut ? m.panels() / 2 : 0;
  const float* bias = biased ? p.bias.data() : nullptr;
  kernels::packed_rows(m, {p.x.data(), p.rows, p.in}, bias, middle, m.panels(), {y.data(), p.out});
  kernels::packed_rows(m, {p.x.data(), p.rows, p.in}, bias, 0, middle, {y.data(), p.out});
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(y[y.size() - 1 - i], kUntouched);
  y.resize(y.size() - 16);
  return y;
}

void check(const Problem& p, kernels::PackedFormat format) {
  SCOPED_TRACE(std::to_string(p.rows) + " rows, " + std::to_string(p.out) + " x " +
               std::to_string(p.in));
  const bool exact = format == kernels::PackedFormat::fp32;
  const Numbers plain = product(p, format, false, false);
  const Numbers biased = product(p, format, true, true);
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t o = 0; o < p.out; ++o) {
      double want = 0.0;
      for (int64_t i = 0; i < p.in; ++i) {
        const float w = p.w[static_cast<size_t>(o * p.in + i)];
        want += double{p.x[static_cast<size_t>(r * p.in + i)]} * (exact ? w : rounded(w));
      }
      const auto at = static_cast<size_t>(r * p.out + o);
      const double near = 1e-6 * static_cast<double>(p.in) + 1e-6;
      ASSERT_NEAR(plain[at], want, near);
      ASSERT_NEAR(biased[at], want + p.bias[static_cast<size_t>(o)], near);
    }
  }
}

TEST(PackedRows, EqualSumsInDouble) {
  on_every_target([] {
    for (const int64_t rows : {0, 1, 2, 3, 6, 11, 26}) {
      for (const int64_t out : {1, 16, 17, 64, 161}) {
        for (const int64_t in : {1, 7, 33, 128}) {
          for (const auto format : kRowFormats) {
            if (format == kernels::PackedFormat::int8)
              continue;  // the error bound of the test of matvec()
            check(random_problem(rows, out, in), format);
          }
        }
      }
    }
  });
}

TEST(PackedRows, DoNotDependOnTheCutNorOnOtherRows) {
  for (const auto format : kRowFormats) {
    const Problem all = random_problem(20, 200, 77);
    const Numbers whole = product(all, format, true, false);
    EXPECT_EQ(product(all, format, true, true), whole);
    Problem few = all;
    few.rows = 2;
    const Numbers some = product(few, format, true, false);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin()));
  }
}

// A row gives the same result alone and among others: sessions rely on it.
TEST(PackedRows, HaveTheBitsOfMatvec) {
  on_every_target([] {
    for (const auto format : kRowFormats) {
      const Problem p = random_problem(9, 200, 77);
      const Numbers together = product(p, format, false, false);
      kernels::PageArena arena;
      const kernels::PackedMatrix m = kernels::pack(p.w.data(), p.out, p.in, format, arena);
      for (int64_t r = 0; r < p.rows; ++r) {
        Numbers x(static_cast<size_t>(m.columns()));
        std::copy_n(p.x.begin() + r * p.in, p.in, x.begin());
        Numbers y(static_cast<size_t>(m.panels() * kernels::kPanel));
        kernels::matvec(m, x.data(), 0, m.panels(), y.data());
        ASSERT_TRUE(std::equal(y.begin(), y.begin() + p.out, together.begin() + r * p.out));
      }
    }
  });
}

}  // namespace
}  // namespace rondo::test
