// Linear maps using oneDNN's gemm directly, with gradients.
#pragma once

#include "rondo/nn/precision.h"

namespace rondo::kernels {
class RightMatrix;
}

namespace rondo::nn {

// x · matrixᵀ + bias: weight [out, in], bias [out] or undefined.
struct LinearMap {
  Tensor weight;
  Tensor bias;
  // If defined (both), a low-rank term of rank r: the matrix is weight + upᵀ · down, formed once
  // for all rows. up [r, out], down [r, in], fp32.
  Tensor up = {};
  Tensor down = {};

  // Differentiable, by plain operations.
  Tensor matrix() const { return up.defined() ? weight + at::matmul(up.t(), down) : weight; }
};

// Whether fused_linear() supports these: fp32 or bf16 on the CPU, fused kernels in use.
bool linear_is_fused(const Tensor& x, const Tensor& weight);

// Several maps of one x [..., in] → [..., out] each. With `bf16`, all factors are rounded to bf16
// (unless they already are, and x only once), in the backward pass too; sums and weight gradients
// are fp32. Results are fp32, or bf16 for a branch if branches_in_bf16(). The gradient of x has x's
// type and is summed over the maps in fp32.
std::vector<Tensor> fused_linears(const Tensor& x, const std::vector<LinearMap>& maps, bool bf16,
                                  Result result);
Tensor fused_linear(const Tensor& x, const LinearMap& map, bool bf16, Result result);

}  // namespace rondo::nn
