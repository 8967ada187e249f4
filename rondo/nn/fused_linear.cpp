// Linear maps as an autograd function.
#include "rondo/nn/fused_linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include "rondo/kernels/gemm.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// op(a) · op(b) → [m, n]; a and b of one type, contiguous. `out` is added to if it is defined.
Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
               const Tensor& out = {}) {
  kernels::Product p;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  p.m = a.size(transpose_a ? 1 : 0);
  p.k = a.size(transpose_a ? 0 : 1);
  p.n = b.size(transpose_b ? 0 : 1);
  p.beta = out.defined() ? 1.0F : 0.0F;
  Tensor c = out.defined() ? out : at::empty({p.m, p.n}, a.options().dtype(at::kFloat));
  if (p.m == 0 || p.n == 0) return c;
  if (p.k == 0) return out.defined() ? c : c.zero_();
  if (a.scalar_type() == at::kBFloat16) {
    kernels::gemm(p, static_cast<const uint16_t*>(a.data_ptr()),
                  static_cast<const uint16_t*>(b.data_ptr()), c.data_ptr<float>());
  } else {
    kernels::gemm(p, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
  }
  return c;
}

Tensor rows(const Tensor& x, at::ScalarType type) {
  return x.reshape({-1, x.size(-1)}).to(type).contiguous();
}

// dW = dyᵀ x. OpenBLAS is the faster one in fp32 where both sides are wide (measured).
Tensor weight_gradient(const Tensor& dy, const Tensor& x) {
  constexpr int64_t kWide = 256;
  if (x.scalar_type() == at::kFloat && dy.size(1) >= kWide && x.size(1) >= kWide) {
    return at::mm(dy.t(), x);
  }
  return product(dy, true, x, false);
}

class FusedLinear : public torch::autograd::Function<FusedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias, bool bf16) {
    const auto type = bf16 ? at::kBFloat16 : at::kFloat;
    const Tensor in = rows(x, type);      // [M, K]
    const Tensor w = rows(weight, type);  // [N, K]
    Shape shape = x.sizes().vec();
    shape.back() = weight.size(0);
    Tensor y;
    if (bias.has_value()) {  // a copy even for one row: it is added to
      y = at::empty({in.size(0), w.size(0)}, in.options().dtype(at::kFloat)).copy_(*bias);
    }
    y = product(in, false, w, true, y);  // [M, N]
    context->save_for_backward({in, weight});
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["x"] = x.requires_grad();
    context->saved_data["weight"] = weight.requires_grad();
    context->saved_data["bias"] = bias.has_value() && bias->requires_grad();
    return y.view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& in = saved[0];
    const Tensor wide = rows(gradients[0], at::kFloat);  // [M, N]
    const Tensor dy = wide.to(in.scalar_type());
    variable_list out(4);
    if (context->saved_data["x"].toBool()) {
      const Tensor w = rows(saved[1], in.scalar_type());
      out[0] = product(dy, false, w, false).view(context->saved_data["shape"].toIntVector());
    }
    if (context->saved_data["weight"].toBool()) out[1] = weight_gradient(dy, in);
    if (context->saved_data["bias"].toBool()) out[2] = wide.sum(0);
    return out;
  }
};

bool is_plain(const Tensor& t) {
  return t.device().is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16);
}

}  // namespace

bool linear_is_fused(const Tensor& x, const Tensor& weight) {
  return kernels_in_use() == Kernels::fused && kernels::has_gemm() && is_plain(x) &&
         is_plain(weight) && weight.dim() == 2;
}

Tensor fused_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool bf16) {
  return FusedLinear::apply(
      x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::optional<Tensor>(), bf16);
}

}  // namespace rondo::nn
