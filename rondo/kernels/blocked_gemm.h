// Matrix products of our own: both sides are laid out for the innermost loop block by block, while
// a block is in a cache, so that no size or stride in memory makes them slow, and bf16 numbers are
// widened on the way. No torch here.
#pragma once

#include "rondo/kernels/gemm.h"

namespace rondo::kernels {

// Rows [row, row + m) and columns [column, column + n) of a result.
struct Part {
  int64_t row, column, m, n;
};

// That part of c, as gemm() would compute it, by the calling thread. A number is the same whatever
// part it is computed with.
void blocked_gemm(const Product& product, const Part& part, const float* a, const float* b,
                  float* c);
void blocked_gemm(const Product& product, const Part& part, const uint16_t* a, const uint16_t* b,
                  float* c);

}  // namespace rondo::kernels
