// A network's last linear map and the cross-entropy of its logits, as one operation over pieces of
// rows: the logits [N, V], the largest tensor of a network with many tokens, are never
// materialized.
#pragma once

#include "rondo/nn/fused_linear.h"

namespace rondo::nn {

// logits = scale · (x · weightᵀ) + bias.
struct Head {
  LinearMap map;  // weight [V, D], bias [V] or undefined
  double scale = 1.0;
};

// cross_entropy_sum() of the logits of x [N, D] against labels [N], each below V or negative.
Tensor head_cross_entropy_sum(const Tensor& x, const Head& head, const Tensor& labels,
                              double smoothing);

}  // namespace rondo::nn
