// The leaf operations: torch underneath, counting and shape-only walking on top.
#include "rondo/nn/ops.h"

#include "rondo/nn/precision.h"

namespace rondo::nn {
namespace {

Tensor shape_only(const Tensor& like, const Shape& shape) {
  return at::empty(shape, like.options());
}

Shape with_last(const Tensor& x, int64_t last) {
  Shape shape = x.sizes().vec();
  shape.back() = last;
  return shape;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Scope& scope) {
  if (scope.watched()) {
    scope.multiply_adds(static_cast<double>(x.numel()) * static_cast<double>(weight.size(0)));
  }
  if (x.is_meta()) return shape_only(x, with_last(x, weight.size(0)));
  const auto in = [](const Tensor& t) { return as_wanted(Operation::linear, t); };
  return at::linear(in(x), in(weight),
                    bias.defined() ? c10::optional<Tensor>(in(bias)) : c10::nullopt);
}

Tensor matmul(const Tensor& a, const Tensor& b, const Scope& scope) {
  if (scope.watched()) {
    scope.multiply_adds(static_cast<double>(a.numel()) * static_cast<double>(b.size(-1)));
  }
  if (a.is_meta()) return shape_only(a, with_last(a, b.size(-1)));
  return at::matmul(as_wanted(Operation::matmul, a), as_wanted(Operation::matmul, b));
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
  if (x.is_meta()) return shape_only(x, out);
  const auto in = [](const Tensor& t) { return as_wanted(Operation::convolution, t); };
  return at::conv2d(in(x), in(weight), in(bias), how.stride, how.padding, /*dilation=*/1,
                    how.groups);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                  const Scope& scope) {
  scope.normalised(static_cast<double>(x.numel()));
  if (x.is_meta()) return shape_only(x, x.sizes().vec());
  return at::layer_norm(as_wanted(Operation::norm, x), weight.sizes(), weight, bias, epsilon);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, const Scope& scope) {
  scope.normalised(static_cast<double>(x.numel()));
  if (x.is_meta()) return shape_only(x, x.sizes().vec());
  const Tensor wide = as_wanted(Operation::norm, x);
  return wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon) * weight;
}

Tensor softmax(const Tensor& scores, const Tensor& visible) {
  if (scores.is_meta()) return shape_only(scores, scores.sizes().vec());
  const Tensor p = at::softmax(as_wanted(Operation::softmax, scores), -1);
  return visible.defined() ? p.masked_fill(visible.logical_not(), 0.0) : p;
}

Tensor dropout(const Tensor& x, double rate, bool training) {
  if (!training || rate <= 0.0 || x.is_meta()) return x;
  return at::dropout(x, rate, /*train=*/true);
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
    return shape_only(table, shape);
  }
  return at::embedding(table, tokens, padding);
}

Tensor activate(const Tensor& x, Activation activation) {
  if (x.is_meta()) return x;
  return activation == Activation::gelu ? at::gelu(x) : at::relu(x);
}

}  // namespace rondo::nn
