// Sums over rows of outer products, which is what gradients of weights are. By tile registers where
// the CPU has them and numbers are bf16, else by oneDNN's gemm. No torch here.
#pragma once

#include "rondo/kernels/amx.h"

namespace rondo::kernels {

void weight_gradient(const WeightGradientShape& p, const float* a, const float* b, float* c);
void weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c);

}  // namespace rondo::kernels
