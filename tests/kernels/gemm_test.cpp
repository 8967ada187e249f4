// Products by oneDNN against plain ones in double, at sizes where they are cut for threads along
// rows, along columns, and not at all; bf16 ones also as CPUs without bf16 compute them. And sums
// of columns, against torch's.
#include "rondo/kernels/gemm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "rondo/kernels/column_sums.h"
#include "rondo/kernels/widened_gemm.h"
#include "rondo/nn/torch.h"

namespace rondo {
namespace {

// One of four ways in which operands may lie.
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
  if (!kernels::has_gemm()) GTEST_SKIP() << "built without oneDNN";
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

const uint16_t* bits_of(const Tensor& t) { return static_cast<const uint16_t*>(t.data_ptr()); }

// Both by whatever this CPU has and by widening, a part of the result and all of it.
TEST(Gemm, OfBf16EqualsProductsOfTheSameNumbers) {
  if (!kernels::has_gemm()) GTEST_SKIP() << "built without oneDNN";
  at::manual_seed(8);
  const int64_t sizes[][3] = {{1, 1, 1}, {300, 517, 65}, {3, 700, 1100}, {259, 31, 513}};
  for (const auto& size : sizes) {
    for (int which = 0; which < 4; ++which) {
      const kernels::Product p = product_of(size, which);
      SCOPED_TRACE(std::to_string(p.m) + " x " + std::to_string(p.n) + ", way " +
                   std::to_string(which));
      const Tensor a = at::randn({p.m, p.k}).to(at::kBFloat16);
      const Tensor b = at::randn({p.k, p.n}).to(at::kBFloat16);
      const Tensor c = at::randn({p.m, p.n});
      const Tensor want =
          p.alpha * at::matmul(a.to(at::kDouble), b.to(at::kDouble)) + p.beta * c.to(at::kDouble);
      const Tensor in_a = stored(a, p.transpose_a);
      const Tensor in_b = stored(b, p.transpose_b);
      const double most = 1e-5 * want.abs().max().item<double>();
      const Tensor whole = c.clone();
      kernels::gemm(p, bits_of(in_a), bits_of(in_b), whole.data_ptr<float>());
      EXPECT_LE((whole - want).abs().max().item<double>(), most);

      const kernels::Part part = {p.m / 3, p.n / 4, p.m - p.m / 3, p.n - p.n / 4};
      const Tensor partly = c.clone();
      ASSERT_TRUE(
          kernels::widened_gemm(p, part, bits_of(in_a), bits_of(in_b), partly.data_ptr<float>()));
      const auto inside = [&](const Tensor& t) {
        return t.slice(0, part.row).slice(1, part.column);
      };
      EXPECT_LE((inside(partly) - inside(want)).abs().max().item<double>(), most);
      inside(partly).copy_(inside(c));
      EXPECT_TRUE(at::equal(partly, c)) << "something outside the part was written";
    }
  }
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
