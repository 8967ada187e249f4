// Dropout whose mask is a function of (seed, position): nothing is saved for the backward pass,
// which regenerates the mask, and the mask does not depend on the number of threads. No torch
// dependency.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// y[i] = x[i] / (1 - rate) if position `first + i` is kept, otherwise 0; i < count. A position is
// kept with probability 1 - rate, to within 2^-32.
void dropout(const float* x, float* y, int64_t first, int64_t count, double rate, uint64_t seed);
void dropout(const Bf16* x, Bf16* y, int64_t first, int64_t count, double rate, uint64_t seed);

}  // namespace rondo::kernels
