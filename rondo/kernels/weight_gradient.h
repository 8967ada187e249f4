// Weight gradients: sums of outer products over rows. bf16 values use AMX tiles where available,
// otherwise oneDNN's gemm. No torch dependency.
#pragma once

#include "rondo/kernels/amx.h"

namespace rondo::kernels {

void weight_gradient(const WeightGradientShape& p, const float* a, const float* b, float* c);
void weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c);

}  // namespace rondo::kernels
