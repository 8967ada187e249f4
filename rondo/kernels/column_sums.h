// Column sums, the gradient of a bias. No torch dependency.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// sums [width] = Σ over rows of x [rows, width]: fp32 within pieces of rows that do not depend on
// the number of threads, double across pieces.
template <class Number>
void column_sums(const Number* x, int64_t rows, int64_t width, float* sums);

}  // namespace rondo::kernels
