// Reductions that search needs over a row of logits: top k and log-sum-exp. No torch dependency.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// The `best` largest of `count` values in descending order, ties in order of position; NaN is never
// selected. Missing entries are -∞ at position 0.
void best_of_row(const float* x, int64_t count, int64_t best, float* values, int64_t* places);

// Returns -∞ for a row of -∞.
float log_sum_exp(const float* x, int64_t count);

}  // namespace rondo::kernels
