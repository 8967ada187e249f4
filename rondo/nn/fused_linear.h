// Linear maps by oneDNN's gemm, with gradients.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::nn {

// Whether fused_linear() takes these: fp32 or bf16 on the CPU, fused kernels in use.
bool linear_is_fused(const Tensor& x, const Tensor& weight);

// x [..., in] · weightᵀ [in, out] + bias [out] (may be undefined) → [..., out], always fp32. With
// `bf16` both factors are rounded to bf16, in the backward pass too; sums and gradients are fp32.
Tensor fused_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool bf16);

}  // namespace rondo::nn
