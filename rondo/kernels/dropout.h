// Dropout whose mask is a function of (seed, place): nothing is stored for the backward pass, which
// asks for the same mask again, and any number of threads draw the same one. No torch here.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// y[i] = x[i] / (1 - rate) where the draw of place `first + i` is kept, else 0; i < count. A draw
// is kept with probability 1 - rate, to within 2^-32.
void dropout(const float* x, float* y, int64_t first, int64_t count, double rate, uint64_t seed);
void dropout(const Bf16* x, Bf16* y, int64_t first, int64_t count, double rate, uint64_t seed);

}  // namespace rondo::kernels
