// A map of low rank joined to its own input, with gradients: no pass over memory beside those of
// the two narrow products.
#pragma once

#include "rondo/nn/precision.h"

namespace rondo::nn {

// x + (x downᵀ) up, of x [..., in] fp32, down [r, in] and up [r, in]. With `bf16` factors are
// rounded to bf16, in the backward pass too; x itself is not. The result is fp32, or bf16 for a
// branch where branches_in_bf16(). For what linear_is_fused() takes.
Tensor fused_low_rank_sum(const Tensor& x, const Tensor& down, const Tensor& up, bool bf16,
                          Result result);

}  // namespace rondo::nn
