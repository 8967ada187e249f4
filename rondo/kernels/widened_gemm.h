// Products with bf16 numbers worked in fp32: blocks of what is bf16 are widened while they are in
// the second cache and multiplied as that. For CPUs that cannot multiply bf16, and for bf16 weights
// with fp32 inputs. Takes little longer than products of fp32. No torch here.
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
