// Sums of columns, which is what the gradient of a bias is. No torch here.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// sums [width] = Σ over rows of x [rows, width], in fp32 over pieces of rows that do not depend on
// the number of threads, in double over pieces.
template <class Number>
void column_sums(const Number* x, int64_t rows, int64_t width, float* sums);

}  // namespace rondo::kernels
