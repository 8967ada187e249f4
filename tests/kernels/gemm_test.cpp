// Products against plain ones in double, at sizes where they are split among threads by rows, by
// columns, and not at all; and by our own loops, which not every CPU uses. Also sums of columns,
// against torch's.
#include "rondo/kernels/gemm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "rondo/kernels/blocked_gemm.h"
#include "rondo/kernels/column_sums.h"
#include "rondo/nn/torch.h"

namespace rondo {
namespace {

// One of four storage orders of the operands.
kernels::Product product_of(const int64_t (&size)[3], int which) {
  kernels::Product p;
  p.transpose_a = which % 2 == 1;
  p.transpose_b = which / 2 == 1;
  p.m = size[0];
  p.n = size[1];
  p.k = size[2];
  p.alpha = 0.5F;
  p.beta = which == 2 ? 0.0F : 1.5F;
  return p;
}

Tensor stored(const Tensor& operand, bool transposed) {
  return transposed ? operand.t().contiguous() : operand;
}

void expect_product(kernels::Product p, bool biased, const std::string& what) {
  SCOPED_TRACE(what);
  const Tensor a = at::randn({p.m, p.k});
  const Tensor b = at::randn({p.k, p.n});
  const Tensor c = at::randn({p.m, p.n});
  Tensor want =
      p.alpha * at::matmul(a.to(at::kDouble), b.to(at::kDouble)) + p.beta * c.to(at::kDouble);
  const Tensor bias = at::randn({p.n});
  if (biased) want = want + bias.to(at::kDouble);
  const Tensor in_a = stored(a, p.transpose_a);
  const Tensor in_b = stored(b, p.transpose_b);
  if (biased) p.bias = bias.data_ptr<float>();
  kernels::gemm(p, in_a.data_ptr<float>(), in_b.data_ptr<float>(), c.data_ptr<float>());
  const double scale = want.abs().max().item<double>();
  EXPECT_LE((c - want).abs().max().item<double>(), 1e-5 * scale);
}

TEST(Gemm, EqualsPlainProductsHoweverItIsCut) {
  at::manual_seed(7);
  const int64_t sizes[][3] = {{1, 1, 1},       {517, 130, 65},  {130, 517, 65}, {129, 1, 1000},
                              {1, 1000, 2500}, {96, 1031, 301}, {301, 301, 47}, {2049, 33, 97}};
  const int threads = at::get_num_threads();
  for (const int team : {1, 2, 3}) {
    at::set_num_threads(team);
    for (const auto& size : sizes) {
      for (int which = 0; which < 4; ++which) {
        const kernels::Product p = product_of(size, which);
        expect_product(p, /*biased=*/which > 0,
                       std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
                           std::to_string(p.k) + ", way " + std::to_string(which) + ", " +
                           std::to_string(team) + " threads");
      }
    }
  }
  at::set_num_threads(threads);
}

// A product of bf16 or fp32 numbers, and the expected result.
struct GivenProduct {
  GivenProduct(const kernels::Product& product, at::ScalarType type) : p(product) {
    const Tensor left = at::randn({p.m, p.k}).to(type);
    const Tensor right = at::randn({p.k, p.n}).to(type);
    want = p.alpha * at::matmul(left.to(at::kDouble), right.to(at::kDouble)) +
           p.beta * c.to(at::kDouble) + bias.to(at::kDouble);
    p.bias = bias.data_ptr<float>();
    most = 1e-5 * want.abs().max().item<double>();
    a = stored(left, p.transpose_a);
    b = stored(right, p.transpose_b);
  }
  template <class Number>
  const Number* numbers(const Tensor& t) const {
    return static_cast<const Number*>(t.data_ptr());
  }
  void expect(const Tensor& got, const Tensor& wanted) const {
    EXPECT_LE((got - wanted).abs().max().item<double>(), most);
  }
  kernels::Product p;
  Tensor bias = at::randn({p.n});
  Tensor c = at::randn({p.m, p.n});
  Tensor a, b, want;
  double most = 0.0;
};

template <class Number>
void expect_blocks(const GivenProduct& given) {
  const kernels::Product& p = given.p;
  const auto run = [&](const kernels::Part& part) {
    const Tensor to = given.c.clone();
    kernels::blocked_gemm(p, part, given.numbers<Number>(given.a), given.numbers<Number>(given.b),
                          to.data_ptr<float>());
    return to;
  };
  const Tensor whole = run({0, 0, p.m, p.n});
  given.expect(whole, given.want);
  const kernels::Part part = {p.m / 3, p.n / 4, p.m - p.m / 3, p.n - p.n / 4};
  const Tensor partly = run(part);
  const auto inside = [&](const Tensor& t) { return t.slice(0, part.row).slice(1, part.column); };
  EXPECT_TRUE(at::equal(inside(partly), inside(whole))) << "a number depends on its part";
  inside(partly).copy_(inside(given.c));
  EXPECT_TRUE(at::equal(partly, given.c)) << "something outside the part was written";
}

// The whole product by the best method of this CPU; by our own loops the whole and a part.
TEST(Gemm, OfEitherTypeEqualsProductsOfTheSameNumbers) {
  at::manual_seed(8);
  const int64_t sizes[][3] = {{1, 1, 1},      {300, 517, 65},   {3, 700, 1100},
                              {259, 31, 513}, {100, 300, 1024}, {64, 2100, 20}};
  for (const auto& size : sizes) {
    for (int which = 0; which < 4; ++which) {
      const kernels::Product p = product_of(size, which);
      SCOPED_TRACE(std::to_string(p.m) + " x " + std::to_string(p.n) + ", way " +
                   std::to_string(which));
      const GivenProduct rounded(p, at::kBFloat16);
      const Tensor whole = rounded.c.clone();
      kernels::gemm(rounded.p, rounded.numbers<uint16_t>(rounded.a),
                    rounded.numbers<uint16_t>(rounded.b), whole.data_ptr<float>());
      rounded.expect(whole, rounded.want);
      expect_blocks<uint16_t>(rounded);
      expect_blocks<float>(GivenProduct(p, at::kFloat));
    }
  }
}

// A sum of no numbers is the previous value plus the bias.
TEST(Gemm, BlocksOfNothing) {
  kernels::Product p = product_of({7, 20, 0}, 1);
  const GivenProduct given(p, at::kFloat);
  expect_blocks<float>(given);
}

TEST(ColumnSums, EqualTorchs) {
  for (const int64_t rows : {0, 1, 15, 16, 17, 1000, 2049}) {
    for (const int64_t width : {1, 3, 64, 301}) {
      const Tensor x = at::randn({rows, width});
      const Tensor rounded = x.to(at::kBFloat16);
      const Tensor sums = at::full({width}, 7.0);
      kernels::column_sums(x.data_ptr<float>(), rows, width, sums.data_ptr<float>());
      EXPECT_TRUE(at::allclose(sums.to(at::kDouble), x.to(at::kDouble).sum(0), 1e-5, 1e-4));
      kernels::column_sums(static_cast<const kernels::Bf16*>(rounded.data_ptr()), rows, width,
                           sums.data_ptr<float>());
      EXPECT_TRUE(at::allclose(sums.to(at::kDouble), rounded.to(at::kDouble).sum(0), 1e-5, 1e-4));
    }
  }
}

}  // namespace
}  // namespace rondo
