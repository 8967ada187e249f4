// bf16 products on CPUs that cannot multiply bf16: blocks of both sides are widened to fp32 while
// they are in the second cache and multiplied as that. Sums are as exact as those of hardware, and
// take little longer than products of fp32. No torch here.
#pragma once

#include "rondo/kernels/gemm.h"

namespace rondo::kernels {

// Rows [row, row + m) and columns [column, column + n) of a result.
struct Part {
  int64_t row, column, m, n;
};

// That part of c, as gemm() would compute it but for the bias, by the calling thread. False:
// failed.
bool widened_gemm(const Product& product, const Part& part, const uint16_t* a, const uint16_t* b,
                  float* c);

}  // namespace rondo::kernels
