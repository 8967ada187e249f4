// Our own matrix multiplication: both operands are packed for the inner loop block by block, while
// a block is in cache, so no size or stride makes it slow; bf16 values are widened while packing.
// No torch dependency.
#pragma once

#include "rondo/kernels/gemm.h"

namespace rondo::kernels {

// Rows [row, row + m) and columns [column, column + n) of a result.
struct Part {
  int64_t row, column, m, n;
};

// Computes that part of c as gemm() would, on the calling thread. Each value is the same whichever
// part it is computed in.
void blocked_gemm(const Product& product, const Part& part, const float* a, const float* b,
                  float* c);
void blocked_gemm(const Product& product, const Part& part, const uint16_t* a, const uint16_t* b,
                  float* c);

}  // namespace rondo::kernels
