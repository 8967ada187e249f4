// 8-bit products, by every method this CPU has, against a plain loop over the quantized numbers and
// against fp32 ones: exact for numbers that 8 bits represent, otherwise within half a step of each
// factor, for all sizes.
#include "rondo/kernels/int8.h"

#include "rondo/nn/layers.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

Tensor int8_of(const Tensor& x, const Tensor& w, const Tensor& bias,
               kernels::Int8Products products = kernels::int8_products().front()) {
  const kernels::Int8Matrix m =
      kernels::quantize_rows(w.data_ptr<float>(), w.size(0), w.size(1), products);
  nn::CompiledLinear map;
  map.int8 = &m;
  map.w = kernels::shape_packed(w.size(0), w.size(1), kernels::PackedFormat::int8);
  if (bias.defined()) map.bias = bias.data_ptr<float>();
  return through(map, x);
}

// Rows as integers from -127 to 127 and their scales, by plain operations.
struct QuantizedRows {
  Tensor q;      // [rows, in]
  Tensor scale;  // [rows, 1]
};

QuantizedRows quantized(const Tensor& x) {
  const Tensor scale = x.abs().amax(1, true) / 127.0F;
  const Tensor inverse = at::where(scale.gt(0.0), 1.0F / scale, at::zeros_like(scale));
  return {(x * inverse).round().to(at::kDouble), scale.to(at::kDouble)};
}

// The definition: a double loop.
Tensor by_loops(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const QuantizedRows a = quantized(x);
  const QuantizedRows b = quantized(w);
  Tensor y = at::empty({x.size(0), w.size(0)}, at::kDouble);
  const auto xs = a.q.accessor<double, 2>();
  const auto ws = b.q.accessor<double, 2>();
  auto ys = y.accessor<double, 2>();
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t o = 0; o < w.size(0); ++o) {
      double sum = 0.0;
      for (int64_t i = 0; i < x.size(1); ++i) sum += xs[r][i] * ws[o][i];
      ys[r][o] = sum;
    }
  }
  return y * a.scale * b.scale.t() + bias.to(at::kDouble);
}

TEST(Int8, EveryWayEqualsADoubleLoop) {
  at::manual_seed(5);
  for (const int64_t in : {1, 3, 63, 64, 65, 200, 257}) {
    for (const int64_t out : {1, 15, 16, 17, 63, 65, 129}) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 31, 33, 70}) {
        const Tensor x = at::randn({rows, in});
        const Tensor w = at::randn({out, in});
        const Tensor bias = at::randn({out});
        const Tensor wanted = by_loops(x, w, bias);
        for (const kernels::Int8Products products : kernels::int8_products()) {
          SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out) +
                       " by " + std::to_string(static_cast<int>(products)));
          expect_near(int8_of(x, w, bias, products), wanted,
                      1e-6 * (1.0 + wanted.abs().max().item<double>()));
        }
      }
    }
  }
}

// 16-bit sums of two such products would overflow.
TEST(Int8, LargestNumbersDoNotSaturate) {
  for (const kernels::Int8Products products : kernels::int8_products()) {
    for (const double sign : {1.0, -1.0}) {
      const Tensor x = at::full({20, 300}, 127.0F);
      const Tensor w = at::full({40, 300}, sign * 127.0).to(at::kFloat);
      expect_identical(int8_of(x, w, Tensor(), products),
                       at::full({20, 40}, sign * 127.0 * 127.0 * 300.0).to(at::kFloat));
    }
  }
}

TEST(Int8, TheSameWithAnyNumberOfThreads) {
  at::manual_seed(6);
  const Tensor x = at::randn({200, 512});
  const Tensor w = at::randn({1000, 512});
  const Tensor bias = at::randn({1000});
  const WithThreads one(1);
  const Tensor wanted = int8_of(x, w, bias);
  const WithThreads three(3);
  expect_identical(int8_of(x, w, bias), wanted);
}

TEST(Int8, NaNStaysNaN) {
  for (const kernels::Int8Products products : kernels::int8_products()) {
    Tensor x = at::ones({6, 5});
    x[1][2] = NAN;
    const Tensor y = int8_of(x, at::ones({3, 5}), Tensor(), products);
    EXPECT_TRUE(y[1].isnan().all().item<bool>());
    EXPECT_EQ(y.isnan().sum().item<int64_t>(), 3);
  }
}

TEST(Int8, WholeNumbersAreExact) {
  at::manual_seed(1);
  // Rows whose largest value is 127 have scale 1.
  Tensor x = at::randint(-127, 128, {5, 37}).to(at::kFloat);
  Tensor w = at::randint(-127, 128, {11, 37}).to(at::kFloat);
  x.select(1, 0).fill_(127.0);
  w.select(1, 3).fill_(-127.0);
  const Tensor bias = at::arange(11).to(at::kFloat);
  for (const kernels::Int8Products products : kernels::int8_products()) {
    expect_identical(int8_of(x, w, bias, products), at::matmul(x, w.t()) + bias);
  }
}

TEST(Int8, OddSizesStayWithinHalfAStep) {
  at::manual_seed(2);
  for (const int64_t in : {1, 2, 31, 64, 65, 256, 1000}) {
    for (const int64_t rows : {1, 3, 17}) {
      const Tensor x = at::randn({rows, in});
      const Tensor w = at::randn({29, in});
      const Tensor exact = at::matmul(x, w.t());
      const Tensor step_x = x.abs().amax(1, true) / 127.0;        // [rows, 1]
      const Tensor step_w = (w.abs().amax(1, true) / 127.0).t();  // [1, 29]
      const Tensor bound = 0.5 * step_x * w.abs().sum(1).unsqueeze(0) +
                           0.5 * step_w * x.abs().sum(1, true) +
                           0.25 * step_x * step_w * static_cast<double>(in) + 1e-4;
      const Tensor apart = (int8_of(x, w, Tensor()) - exact).abs();
      EXPECT_TRUE(apart.le(bound).all().item<bool>()) << rows << " x " << in;
    }
  }
}

TEST(Int8, ZeroRowsGiveZero) {
  const Tensor y = int8_of(at::zeros({2, 8}), at::zeros({3, 8}), Tensor());
  expect_identical(y, at::zeros({2, 3}));
}

TEST(Int8, KeepsLeadingDimensions) {
  at::manual_seed(3);
  const Tensor x = at::randn({2, 3, 16});
  const Tensor w = at::randn({5, 16});
  const Tensor y = int8_of(x, w, Tensor());
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 3, 5}));
  expect_identical(y.view({6, 5}), int8_of(x.view({6, 16}), w, Tensor()));
}

TEST(WeightPacker, MapsStayNear) {
  at::manual_seed(4);
  const at::NoGradGuard no_grad;
  const Tensor w = at::randn({40, 64}) / 8.0;
  const Tensor bias = at::randn({40});
  const Tensor x = at::randn({7, 64});
  const nn::Linear map(w, bias);
  const Tensor exact = map.forward(x, Scope());
  nn::WeightPacker whole(kernels::PackedFormat::fp32);
  expect_near(through(map.compile(whole), x), exact, 1e-5);
  nn::WeightPacker half(kernels::PackedFormat::bf16);
  const Tensor by_half = through(map.compile(half), x);
  expect_near(by_half, exact, 0.05);
  const Tensor rounded = w.to(at::kBFloat16).to(at::kFloat);  // weights are, inputs are not
  expect_near(by_half, nn::Linear(rounded, bias).forward(x, Scope()), 2e-4);
  nn::WeightPacker small(kernels::PackedFormat::fp32, /*int8_inputs=*/true);
  expect_near(through(map.compile(small), x), exact, 0.1);
}

}  // namespace
}  // namespace rondo::test
