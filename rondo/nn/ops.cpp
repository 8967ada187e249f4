// Leaf operations: torch underneath, counting and shape-only evaluation on top.
#include "rondo/nn/ops.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "rondo/base/require.h"
#include "rondo/kernels/dropout.h"
#include "rondo/kernels/packed_rows.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::nn {
namespace {

// Checks a width beyond which our kernels would read out of bounds.
void require_width(const Tensor& x, int64_t width, const char* operation) {
  const int64_t got = x.dim() > 0 ? x.size(-1) : 0;
  require(got == width, "{}: expected rows of {} numbers, got {}", operation, width, got);
}

Shape with_last(const Tensor& x, int64_t last) {
  Shape shape = x.sizes().vec();
  shape.back() = last;
  return shape;
}

// A result of a shape; gradients have the shapes of the inputs.
class ShapeOnly : public torch::autograd::Function<ShapeOnly> {
 public:
  using Input = c10::optional<Tensor>;
  static Tensor forward(torch::autograd::AutogradContext* context, const Shape& shape,
                        const Tensor& a, const Input& b, const Input& c) {
    context->save_for_backward({a, b.value_or(Tensor()), c.value_or(Tensor())});
    return at::empty(shape, a.options());
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& /*gradients*/) {
    torch::autograd::variable_list out = {Tensor()};  // of the shape
    for (const Tensor& input : context->get_saved_variables()) {
      out.push_back(input.defined() ? at::empty_like(input) : Tensor());
    }
    return out;
  }
};

// `x` with some values dropped, determined by the seed.
Tensor drop_values(const Tensor& x, double rate, int64_t seed) {
  const Tensor in = x.contiguous();
  Tensor out = at::empty_like(in);
  const auto drop = [&](const auto* from, auto* to) {
    at::parallel_for(0, in.numel(), kernels::kWorthDropout, [&](int64_t first, int64_t last) {
      kernels::dropout(from + first, to + first, first, last - first, rate,
                       static_cast<uint64_t>(seed));
    });
  };
  if (in.scalar_type() == at::kFloat) {
    drop(in.data_ptr<float>(), out.data_ptr<float>());
  } else {
    drop(static_cast<const kernels::Bf16*>(in.data_ptr()),
         static_cast<kernels::Bf16*>(out.data_ptr()));
  }
  return out;
}

// Saves the seed instead of the mask.
class HashedDropout : public torch::autograd::Function<HashedDropout> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double rate,
                        int64_t seed) {
    context->saved_data["rate"] = rate;
    context->saved_data["seed"] = seed;
    return drop_values(x, rate, seed);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const double rate = context->saved_data["rate"].toDouble();
    const int64_t seed = context->saved_data["seed"].toInt();
    return {drop_values(gradients[0], rate, seed), Tensor(), Tensor()};
  }
};

// Whether our kernel gives the precision that the table asks for, which is fp32: bf16 rows only
// under mixed precision.
bool norm_is_fused(const Tensor& x, const Tensor& weight) {
  if (!kernels_take(x) || weight.scalar_type() != at::kFloat || x.size(-1) != weight.numel()) {
    return false;
  }
  if (x.scalar_type() == at::kFloat) return true;
  return as_wanted(Operation::norm, at::empty({0}, x.options())).scalar_type() == at::kFloat;
}

// Whether all terms are fp32, and x and y of the same shape.
bool is_fp32(const WeightedSum& in) {
  const auto fp32 = [](const Tensor& t) {
    return !t.defined() || (t.is_cpu() && t.scalar_type() == at::kFloat);
  };
  return in.y.defined() && fp32(in.x) && fp32(in.y) && fp32(in.a) && fp32(in.b) &&
         in.x.sizes() == in.y.sizes();
}

bool sum_is_fused(const WeightedSum& in, const Tensor& weight) {
  return is_fp32(in) && norm_is_fused(in.x, weight);
}

at::ScalarType norm_result(Result result) {
  return result == Result::branch && branches_in_bf16() ? at::kBFloat16 : at::kFloat;
}

// Rounds to bf16 and back. Multiplying such values is equivalent to a bf16 matmul; torch's own, via
// oneDNN primitives, crashes with AMX tiles in Debian's version.
Tensor rounded(const Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }

}  // namespace

Tensor linear(const Tensor& x, const LinearMap& map, const Scope& scope, Result result) {
  const Tensor& weight = map.weight;
  const Tensor& bias = map.bias;
  require_width(x, weight.size(1), "linear map");
  if (scope.watched()) {
    scope.multiply_adds(static_cast<double>(x.numel()) * static_cast<double>(weight.size(0)));
  }
  if (x.is_meta()) return shape_only(with_last(x, weight.size(0)), x, weight, bias);
  const bool bf16 = runs_in_bf16(Operation::linear, x.scalar_type());
  if (linear_is_fused(x, weight)) return fused_linear(x, map, bf16, result);
  const auto in = [bf16](const Tensor& t) { return bf16 ? rounded(t) : t; };
  return at::linear(in(x), in(map.matrix()),
                    bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
}

Tensor matmul(const Tensor& a, const Tensor& b, const Scope& scope) {
  require_width(a, b.size(-2), "product");
  if (scope.watched()) {
    scope.multiply_adds(static_cast<double>(a.numel()) * static_cast<double>(b.size(-1)));
  }
  if (a.is_meta()) return shape_only(with_last(a, b.size(-1)), a, b);
  const bool bf16 = runs_in_bf16(Operation::matmul, a.scalar_type());
  if (b.dim() == 2 && linear_is_fused(a, b)) {
    return fused_linear(a, {b.t(), Tensor()}, bf16, Result::stream);
  }
  return bf16 ? at::matmul(rounded(a), rounded(b)) : at::matmul(a, b);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Convolution& how,
              const Scope& scope) {
  const auto side = [&](int64_t dim) {
    return (x.size(dim) + 2 * how.padding - weight.size(dim)) / how.stride + 1;
  };
  const Shape out = {x.size(0), weight.size(0), side(2), side(3)};
  if (scope.watched()) {
    scope.multiply_adds(static_cast<double>(out[0] * out[2] * out[3]) *
                        static_cast<double>(weight.numel()));
  }
  if (x.is_meta()) return shape_only(out, x, weight, bias);
  const auto in = [](const Tensor& t) { return as_wanted(Operation::convolution, t); };
  return at::conv2d(in(x), in(weight), in(bias), how.stride, how.padding, /*dilation=*/1,
                    how.groups);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                  const Scope& scope, Result result) {
  scope.normalized(static_cast<double>(x.numel()));
  if (x.is_meta()) return shape_only(x.sizes().vec(), x, weight, bias);
  if (norm_is_fused(x, weight)) {
    return fused_norm(x, weight, bias, {epsilon, /*centered=*/true, norm_result(result)});
  }
  return at::layer_norm(as_wanted(Operation::norm, x), weight.sizes(), weight, bias, epsilon);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, const Scope& scope,
                Result result) {
  scope.normalized(static_cast<double>(x.numel()));
  if (x.is_meta()) return shape_only(x.sizes().vec(), x, weight);
  if (norm_is_fused(x, weight)) {
    return fused_norm(x, weight, Tensor(), {epsilon, /*centered=*/false, norm_result(result)});
  }
  const Tensor wide = as_wanted(Operation::norm, x);
  return wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon) * weight;
}

NormedSum layer_norm(const WeightedSum& in, const Tensor& weight, const Tensor& bias,
                     double epsilon, const Scope& scope, Result result) {
  if (sum_is_fused(in, weight)) {
    scope.normalized(static_cast<double>(in.x.numel()));
    return fused_norm_of_sum(in, weight, bias, {epsilon, /*centered=*/true, norm_result(result)});
  }
  const Tensor sum = weighted_sum(in);
  return {sum, layer_norm(sum, weight, bias, epsilon, scope, result)};
}

NormedSum rms_norm(const WeightedSum& in, const Tensor& weight, double epsilon, const Scope& scope,
                   Result result) {
  if (sum_is_fused(in, weight)) {
    scope.normalized(static_cast<double>(in.x.numel()));
    return fused_norm_of_sum(in, weight, Tensor(),
                             {epsilon, /*centered=*/false, norm_result(result)});
  }
  const Tensor sum = weighted_sum(in);
  return {sum, rms_norm(sum, weight, epsilon, scope, result)};
}

Tensor unit_norm(const Tensor& x, double epsilon) {
  if (x.is_meta()) return x;
  if (x.dim() == 4 && !x.is_contiguous() && x.transpose(1, 2).is_contiguous()) {  // heads in place
    return unit_norm(x.transpose(1, 2), epsilon).transpose(1, 2);
  }
  if (kernels_take(x)) {
    FusedNorm how;
    how.epsilon = epsilon;
    how.centered = false;
    how.result = x.scalar_type();
    how.summed = true;
    return fused_norm(x, at::ones({x.size(-1)}, at::kFloat), Tensor(), how);
  }
  const Tensor wide = as_wanted(Operation::norm, x);
  return wide * at::rsqrt(wide.square().sum(-1, /*keepdim=*/true) + epsilon);
}

Tensor softmax(const Tensor& scores, const Tensor& mask) {
  if (scores.is_meta()) return shape_only(scores.sizes().vec(), scores);
  const Tensor p = at::softmax(as_wanted(Operation::softmax, scores), -1);
  return mask.defined() ? p.masked_fill(mask.logical_not(), 0.0) : p;
}

Tensor dropout(const Tensor& x, double rate, bool training) {
  if (!training || rate <= 0.0 || x.is_meta()) return x;
  if (!x.is_cpu() || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kBFloat16)) {
    return at::dropout(x, rate, /*train=*/true);
  }
  // The seed comes from torch's generator, which training reseeds at every step.
  const int64_t seed =
      at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
  return HashedDropout::apply(x, rate, seed);
}

Tensor drop_path(const Tensor& x, double rate, bool training) {
  if (!training || rate <= 0.0 || x.is_meta()) return x;
  Shape rows(static_cast<size_t>(x.dim()), 1);
  rows[0] = x.size(0);
  return x * at::empty(rows, x.options()).bernoulli_(1.0 - rate).div_(1.0 - rate);
}

Tensor embed(const Tensor& table, const Tensor& tokens, int64_t padding) {
  if (table.is_meta()) {
    Shape shape = tokens.sizes().vec();
    shape.push_back(table.size(1));
    return shape_only(shape, table);
  }
  return at::embedding(table, tokens, padding);
}

Tensor activate(const Tensor& x, Activation activation, const Tensor& bias) {
  if (x.is_meta()) return bias.defined() ? shape_only(x.sizes().vec(), x, bias) : x;
  if (bias.defined()) require_width(x, bias.numel(), "activation");
  if (kernels_take(x) && x.is_contiguous() &&
      (!bias.defined() || bias.scalar_type() == at::kFloat)) {
    return fused_activation(x, bias, activation == Activation::gelu);
  }
  const Tensor in = bias.defined() ? x + bias.to(x.scalar_type()) : x;
  return activation == Activation::gelu ? at::gelu(in) : at::relu(in);
}

Tensor shape_only(const Shape& shape, const Tensor& a, const Tensor& b, const Tensor& c) {
  const auto optional = [](const Tensor& t) {
    return t.defined() ? c10::optional<Tensor>(t) : c10::nullopt;
  };
  return ShapeOnly::apply(shape, a, optional(b), optional(c));
}

Tensor weighted_sum(const WeightedSum& in) {
  if (!in.y.defined()) return in.x;
  if (!in.a.defined() && !in.b.defined()) return in.x + in.y;  // both have the gradient of the sum
  if (kernels_take(in.x) && is_fp32(in)) return fused_weighted_sum(in);
  return (in.a.defined() ? in.x * in.a : in.x) + (in.b.defined() ? in.y * in.b : in.y);
}

}  // namespace rondo::nn
