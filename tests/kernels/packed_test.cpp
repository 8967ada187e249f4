// Packed weights and the functions of one row against plain loops in double, over odd shapes, in
// every format and for every target that this CPU can run.
#include "rondo/kernels/packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/one_row_test_util.h"

namespace rondo::test {
namespace {

using kernels::PackedFormat;
constexpr PackedFormat kFormats[] = {PackedFormat::fp32, PackedFormat::bf16, PackedFormat::int8};

Numbers padded(Numbers x) {
  x.resize(static_cast<size_t>(kernels::round_up(static_cast<int64_t>(x.size()), kernels::kPanel)));
  return x;
}

// w rounded to a format.
Numbers as_kept(const Numbers& w, int64_t out, int64_t in, PackedFormat format) {
  Numbers kept = w;
  if (format == PackedFormat::bf16) {
    for (float& x : kept) x = rounded(x);
  } else if (format == PackedFormat::int8) {
    for (int64_t o = 0; o < out; ++o) {
      float* row = kept.data() + o * in;
      float largest = 0.0F;
      for (int64_t i = 0; i < in; ++i) largest = std::max(largest, std::abs(row[i]));
      const float step = largest / 127.0F;
      for (int64_t i = 0; i < in; ++i) row[i] = std::round(row[i] / step) * step;
    }
  }
  return kept;
}

void check_product(int64_t out, int64_t in, PackedFormat format) {
  SCOPED_TRACE(std::to_string(out) + " x " + std::to_string(in));
  const Numbers w = random_numbers(out * in, 1);
  const Numbers x = padded(random_numbers(in, 2));
  kernels::PageArena arena;
  const kernels::PackedMatrix m = kernels::pack(w.data(), out, in, format, arena);
  EXPECT_GE(arena.bytes(), m.bytes());
  constexpr float kUntouched = 12345.0F;
  Numbers y(static_cast<size_t>(m.panels() * kernels::kPanel), kUntouched);
  const int64_t middle = m.panels() / 2;
  kernels::matvec(m, x.data(), middle, m.panels(), y.data());
  for (int64_t o = 0; o < middle * kernels::kPanel; ++o) {
    ASSERT_EQ(y[static_cast<size_t>(o)], kUntouched) << "another thread's row " << o;
  }
  kernels::matvec(m, x.data(), 0, middle, y.data());
  const Numbers kept = as_kept(w, out, in, format);
  for (int64_t o = 0; o < out; ++o) {
    double want = 0.0;
    for (int64_t i = 0; i < in; ++i) {
      want +=
          static_cast<double>(kept[static_cast<size_t>(o * in + i)]) * x[static_cast<size_t>(i)];
    }
    ASSERT_NEAR(y[static_cast<size_t>(o)], want, 1e-6 * static_cast<double>(in) + 1e-6) << o;
  }
}

TEST(Packed, ProductsOfOddShapesInEveryFormat) {
  on_every_target([] {
    for (const auto format : kFormats) {
      for (const int64_t out : {1, 15, 16, 17, 64, 100, 161}) {
        for (const int64_t in : {1, 2, 3, 5, 16, 67, 256}) check_product(out, in, format);
      }
    }
  });
}

TEST(Packed, TakesAsManyBytesAsTheFormatSays) {
  kernels::PageArena arena;
  const Numbers w = random_numbers(256 * 256, 3);
  const auto bytes = [&](PackedFormat format) {
    return kernels::pack(w.data(), 256, 256, format, arena).bytes();
  };
  EXPECT_EQ(bytes(PackedFormat::fp32), 4U * 256 * 256);
  EXPECT_EQ(bytes(PackedFormat::bf16), 2U * 256 * 256);
  EXPECT_EQ(bytes(PackedFormat::int8), 256U * 256 + 4 * 256);
}

// One column of a packed row at a time.
Numbers unpacked(const Numbers& row, PackedFormat format) {
  kernels::PageArena arena;
  const auto in = static_cast<int64_t>(row.size());
  const kernels::PackedMatrix m = kernels::pack(row.data(), 1, in, format, arena);
  Numbers back(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    Numbers x = padded(Numbers(row.size()));
    x[i] = 1.0F;
    float y[kernels::kPanel];
    kernels::matvec(m, x.data(), 0, 1, y);
    back[i] = y[0];
    for (int64_t o = 1; o < kernels::kPanel; ++o) EXPECT_EQ(y[o], 0.0F) << "no such row";
  }
  return back;
}

TEST(Packed, SixteenBitsHoldEveryBf16Number) {
  on_every_target([] {
    Numbers row = random_numbers(301, 22, 3.0F);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = std::ldexp(row[i], -static_cast<int>(i % 60));
    }
    row[5] = 0.0F;
    const Numbers back = unpacked(row, PackedFormat::bf16);
    for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(back[i], rounded(row[i])) << i;
  });
}

TEST(Packed, RowsOfZerosAreZeros) {
  for (const auto format : kFormats) {
    for (const float x : unpacked(Numbers(19), format)) EXPECT_EQ(x, 0.0F);
  }
}

TEST(OneRow, Norms) {
  on_every_target([] {
    for (const int64_t width : {1, 7, 16, 100, 256}) {
      const Numbers x = random_numbers(width, 8, 4.0F);
      const Numbers weight = random_numbers(width, 9);
      const Numbers bias = random_numbers(width, 10);
      for (const bool centered : {false, true}) {
        double mean = 0.0;
        if (centered) {
          for (const float v : x) mean += v / static_cast<double>(width);
        }
        double squares = 0.0;
        for (const float v : x) squares += (v - mean) * (v - mean);
        const double factor = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-3);
        Numbers y(x.size());
        kernels::norm_one(x.data(), weight.data(), centered ? bias.data() : nullptr, 1e-3F, width,
                          y.data());
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(y[i], (x[i] - mean) * factor * weight[i] + (centered ? bias[i] : 0.0), 2e-5);
        }
      }
      Numbers unit = x;
      kernels::normalize_one(unit.data(), width, 1e-6F);
      double squares = 1e-6;
      for (const float v : x) squares += double{v} * v;
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(unit[i], x[i] / std::sqrt(squares), 1e-6);
    }
  });
}

TEST(OneRow, Activations) {
  on_every_target([] {
    const Numbers x = random_numbers(101, 11, 5.0F);
    Numbers relu = x;
    kernels::relu_one(relu.data(), 101);
    Numbers gelu = x;
    kernels::gelu_one(gelu.data(), 101);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(relu[i], std::max(x[i], 0.0F));
      EXPECT_NEAR(gelu[i], 0.5 * x[i] * (1.0 + std::erf(x[i] / std::sqrt(2.0))), 2e-6);
    }
  });
}

TEST(OneRow, Gates) {
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  on_every_target([&] {
    constexpr int64_t kWidth = 101;
    Numbers forget = random_numbers(kWidth, 12, 6.0F);
    forget[3] = 500.0F;  // far beyond the range of e^x
    forget[4] = -500.0F;
    const Numbers input = random_numbers(kWidth, 13, 6.0F);
    const Numbers c = random_numbers(kWidth, 14, 2.0F);
    Numbers z = forget;
    kernels::tanh_one(z.data(), kWidth);
    Numbers fixed = c;
    kernels::fixed_gate_one(z.data(), input.data(), kWidth, fixed.data());
    Numbers lstm = c;
    kernels::lstm_gate_one(z.data(), forget.data(), input.data(), kWidth, lstm.data());
    for (size_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(z[i], std::tanh(forget[i]), 3e-7);
      EXPECT_NEAR(fixed[i], c[i] * input[i] + z[i] * (1.0 - input[i]), 2e-6);
      EXPECT_NEAR(lstm[i], c[i] * sigmoid(forget[i]) + z[i] * sigmoid(input[i]), 1e-6);
    }
  });
}

}  // namespace
}  // namespace rondo::test
