// A feed-forward in mixed precision, with gradients: hidden rows meet the activation, and backwards
// its slope, while they are in the second cache.
#pragma once

#include "rondo/nn/fused_linear.h"

namespace rondo::nn {

// down · act(up · u) of u [..., in], act being the exact GELU or ReLU; up to hidden rows in bf16,
// down to fp32, both with a bias or without and without a part of low rank. Factors are bf16, sums
// and gradients of parameters fp32, the gradient of u has u's type. For what linear_is_fused()
// takes.
Tensor fused_feed_forward(const Tensor& u, const LinearMap& up, const LinearMap& down, bool gelu);

}  // namespace rondo::nn
