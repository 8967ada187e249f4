// Norms, activations and weighted sums by our own kernels, with gradients; ops.h calls them where
// they apply (CPU, fp32 or bf16).
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::nn {

// Whether our kernels are selected (kernel_choice.h) and support `x`.
bool kernels_take(const Tensor& x);

struct FusedNorm {
  double epsilon = 0.0;
  bool centered = true;  // layer norm; otherwise RMS norm
  at::ScalarType result = at::kFloat;
  bool summed = false;  // RMS norm by the sum of squares instead of their mean
};
// Over the last dimension; `weight` and `bias` (may be undefined) are fp32 vectors.
Tensor fused_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const FusedNorm& how);

// GELU (exact) or ReLU of x + bias, over the last dimension; `bias` fp32, may be undefined.
Tensor fused_activation(const Tensor& x, const Tensor& bias, bool gelu);

// a·x + b·y with scalars a and b []; undefined ones count as 1.
struct WeightedSum {
  Tensor x;
  Tensor y = {};
  Tensor a = {};
  Tensor b = {};
};
// x and y fp32, of the same shape.
Tensor fused_weighted_sum(const WeightedSum& in);

struct NormedSum {
  Tensor sum;
  Tensor norm;
};
// The sum and its norm in one pass over memory, and one backward; x and y fp32, of the same shape.
NormedSum fused_norm_of_sum(const WeightedSum& in, const Tensor& weight, const Tensor& bias,
                            const FusedNorm& how);

}  // namespace rondo::nn
