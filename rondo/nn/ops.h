// The operations networks are made of. Each reports its multiply-adds to the observer, if any, and
// returns only a shape for a tensor without memory (ShapesOnly), so that counting runs the same
// code as computing.
#pragma once

#include "rondo/nn/fused_linear.h"
#include "rondo/nn/fused_ops.h"
#include "rondo/nn/probe.h"

namespace rondo::nn {

// x [..., in] · weightᵀ [in, out] (+ bias [out]) → [..., out]. A weight stored in bf16 (inference)
// rounds the input too; the result is then fp32.
Tensor linear(const Tensor& x, const LinearMap& map, const Scope& scope,
              Result result = Result::stream);
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Scope& scope,
                     Result result = Result::stream) {
  return linear(x, LinearMap{weight, bias}, scope, result);
}

// Batched a [..., n, k] · b [..., k, m] → [..., n, m].
Tensor matmul(const Tensor& a, const Tensor& b, const Scope& scope);

struct Convolution {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
};
// x [B, in, H, W] → [B, out, H', W'].
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Convolution& how,
              const Scope& scope);

// Over the last dimension, with weight and bias.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                  const Scope& scope, Result result = Result::stream);

// x / sqrt(mean(x²) + ε) · weight, in fp32 at least.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, const Scope& scope,
                Result result = Result::stream);

// Norm of a sum, which is returned too.
NormedSum layer_norm(const WeightedSum& in, const Tensor& weight, const Tensor& bias,
                     double epsilon, const Scope& scope, Result result = Result::stream);
NormedSum rms_norm(const WeightedSum& in, const Tensor& weight, double epsilon, const Scope& scope,
                   Result result = Result::stream);

// x / sqrt(Σx² + ε), sums in fp32; the result has x's type.
Tensor unit_norm(const Tensor& x, double epsilon);

// Softmax over the last dimension of scores. Where `mask` (broadcastable, bool, may be undefined)
// is false the result is exactly zero: the scores there must already be hidden by a large negative
// number, so this matters only for a query that sees no key at all.
Tensor softmax(const Tensor& scores, const Tensor& mask);

// Identity unless training.
Tensor dropout(const Tensor& x, double rate, bool training);

// Stochastic depth: drops whole batch entries and scales the rest.
Tensor drop_path(const Tensor& x, double rate, bool training);

// Rows of `table` [V, D] by `tokens`; row `padding` (if ≥ 0) receives no gradient.
Tensor embed(const Tensor& table, const Tensor& tokens, int64_t padding = -1);

// On the meta device: a result of this shape without computing it; gradients flow to the inputs.
Tensor shape_only(const Shape& shape, const Tensor& a, const Tensor& b = {}, const Tensor& c = {});

enum class Activation { gelu, relu };
// Of x, or of x + bias (a vector along the last dimension).
Tensor activate(const Tensor& x, Activation activation, const Tensor& bias = {});

// a·x + b·y with scalars a and b [], 1 where undefined; without y, x itself.
Tensor weighted_sum(const WeightedSum& in);

}  // namespace rondo::nn
