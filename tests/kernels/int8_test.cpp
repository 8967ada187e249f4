// 8-bit products against fp32 ones: exact on numbers that 8 bits hold, within half a step of each
// factor on others, whatever the sizes.
#include "rondo/kernels/int8.h"

#include "rondo/nn/layers.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

Tensor int8_of(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const kernels::Int8Matrix m = kernels::quantize_rows(w.data_ptr<float>(), w.size(0), w.size(1));
  return nn::int8_linear(x, m, bias, Scope());
}

TEST(Int8, WholeNumbersAreExact) {
  at::manual_seed(1);
  // Rows whose largest value is 127 have scale 1.
  Tensor x = at::randint(-127, 128, {5, 37}).to(at::kFloat);
  Tensor w = at::randint(-127, 128, {11, 37}).to(at::kFloat);
  x.select(1, 0).fill_(127.0);
  w.select(1, 3).fill_(-127.0);
  const Tensor bias = at::arange(11).to(at::kFloat);
  expect_identical(int8_of(x, w, bias), at::matmul(x, w.t()) + bias);
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

TEST(WeightFormat, ConvertedMapsStayNear) {
  at::manual_seed(4);
  const at::NoGradGuard no_grad;
  const Tensor w = at::randn({40, 64}) / 8.0;
  const Tensor bias = at::randn({40});
  const Tensor x = at::randn({7, 64});
  const Tensor exact = nn::Linear(w, bias).forward(x, Scope());
  nn::Linear half(w.clone(), bias);
  half.convert(nn::WeightFormat::bf16);
  expect_near(half.forward(x, Scope()), exact, 0.05);
  EXPECT_EQ(half.forward(x, Scope()).scalar_type(), at::kFloat);
  nn::Linear small(w.clone(), bias);
  small.convert(nn::WeightFormat::int8);
  expect_near(small.forward(x, Scope()), exact, 0.1);
  EXPECT_EQ(small.weight().numel(), 0) << "the fp32 weight is given up";
}

}  // namespace
}  // namespace rondo::test
