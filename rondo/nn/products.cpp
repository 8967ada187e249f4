// Adapts tensors for the kernels.
#include "rondo/nn/products.h"

#include "rondo/kernels/column_sums.h"
#include "rondo/kernels/gemm.h"
#include "rondo/kernels/matmul.h"
#include "rondo/kernels/thresholds.h"
#include "rondo/kernels/weight_gradient.h"
#include "rondo/nn/gradients.h"

namespace rondo::nn {
namespace {

// a · op(b) → [m, n] fp32, by gemm. Accumulates into `out` if defined.
Tensor product_by_gemm(const Factors& f, bool transpose_b, const Tensor& out, const Tensor& bias) {
  kernels::Product p;
  p.transpose_b = transpose_b;
  p.m = f.a.size(0);
  p.k = f.a.size(1);
  p.n = f.b.size(transpose_b ? 0 : 1);
  p.beta = out.defined() ? 1.0F : 0.0F;
  if (bias.defined()) p.bias = bias.data_ptr<float>();
  Tensor c = out.defined() ? out : at::empty({p.m, p.n}, at::kFloat);
  if (p.m == 0 || p.n == 0) return c;
  if (p.k == 0) {
    if (!out.defined()) c.zero_();
    return bias.defined() ? c.add_(bias) : c;
  }
  const auto bits = [](const Tensor& t) { return static_cast<const uint16_t*>(t.data_ptr()); };
  if (f.a.scalar_type() == at::kBFloat16) {
    kernels::gemm(p, bits(f.a), bits(f.b), c.data_ptr<float>());
  } else {
    kernels::gemm(p, f.a.data_ptr<float>(), f.b.data_ptr<float>(), c.data_ptr<float>());
  }
  return c;
}

Tensor products_by_gemm(const std::vector<Factors>& factors, bool transpose_b,
                        const ProductResult& result) {
  Tensor sum;
  if (result.addend.defined()) {
    sum = result.addend.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  Tensor bias = result.bias;
  for (const Factors& f : factors) {
    sum = product_by_gemm(f, transpose_b, sum, bias);
    bias = Tensor();
  }
  return sum.to(result.type);
}

kernels::RowResults row_results(const ProductResult& result, const Tensor& out) {
  kernels::RowResults to;
  if (result.type == at::kBFloat16) {
    to.rounded = static_cast<kernels::Bf16*>(out.data_ptr());
  } else {
    to.exact = out.data_ptr<float>();
  }
  if (result.bias.defined()) to.bias = result.bias.data_ptr<float>();
  if (result.addend.defined()) to.addend = result.addend.data_ptr<float>();
  return to;
}

// Whether a weight's gradient may be accumulated in place.
bool takes_gradient(const Tensor& weight) {
  return gradients_in_place() && weight.defined() && weight.scalar_type() == at::kFloat &&
         (!weight.grad().defined() || weight.grad().is_contiguous());
}

}  // namespace

Tensor as_rows(const Tensor& x, at::ScalarType type) {
  return x.reshape({-1, x.size(-1)}).to(type).contiguous();
}

const kernels::Bf16* bf16_numbers(const Tensor& t) {
  return static_cast<const kernels::Bf16*>(t.data_ptr());
}

Tensor product_of_rows(const std::vector<Factors>& factors, bool transpose_b,
                       const ProductResult& result) {
  const int64_t m = factors[0].a.size(0);
  const int64_t n = factors[0].b.size(transpose_b ? 0 : 1);
  std::vector<kernels::RightMatrix> right;
  right.reserve(factors.size());
  std::vector<kernels::RowTerm> terms;
  if (factors[0].a.scalar_type() == at::kBFloat16 && m >= kernels::kFewRows && n > 0) {
    for (const Factors& f : factors) {
      if (f.a.size(1) == 0) continue;
      right.emplace_back(bf16_numbers(f.b), f.a.size(1), n, transpose_b);
      terms.push_back({bf16_numbers(f.a), &right.back()});
    }
  }
  if (terms.empty()) return products_by_gemm(factors, transpose_b, result);
  const Tensor out = at::empty({m, n}, result.type);
  kernels::matmul(terms, m, row_results(result, out));
  return out;
}

Tensor weight_gradient(const Tensor& a, const Tensor& b, const Tensor& sum) {
  kernels::WeightGradientShape p;
  p.rows = a.size(0);
  p.n = a.size(1);
  p.k = b.size(1);
  p.add = sum.defined();
  Tensor c = sum.defined() ? sum : at::empty({p.n, p.k}, at::kFloat);
  if (c.numel() == 0) return c;
  if (p.rows == 0) return sum.defined() ? c : c.zero_();
  if (b.scalar_type() == at::kBFloat16) {
    kernels::weight_gradient(p, bf16_numbers(a), bf16_numbers(b), c.data_ptr<float>());
  } else {
    kernels::weight_gradient(p, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
  }
  return c;
}

Tensor sum_of_rows(const Tensor& x) {
  const Tensor sums = at::empty({x.size(1)}, at::kFloat);
  if (x.scalar_type() == at::kBFloat16) {
    kernels::column_sums(bf16_numbers(x), x.size(0), x.size(1), sums.data_ptr<float>());
  } else {
    kernels::column_sums(x.data_ptr<float>(), x.size(0), x.size(1), sums.data_ptr<float>());
  }
  return sums;
}

Tensor accumulate_gradient(const Tensor& weight, const Tensor& dy, const Tensor& x) {
  if (!takes_gradient(weight)) return weight_gradient(dy, x);
  const Tensor now = weight_gradient(dy, x, weight.grad());
  if (!weight.grad().defined()) weight.mutable_grad() = now;
  return {};
}

Tensor accumulate_gradient(const Tensor& weight, const Tensor& gradient) {
  if (!takes_gradient(weight)) return gradient;
  if (weight.grad().defined()) {
    weight.mutable_grad().add_(gradient);
  } else {
    weight.mutable_grad() = gradient;
  }
  return {};
}

}  // namespace rondo::nn
