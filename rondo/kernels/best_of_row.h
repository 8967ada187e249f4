// What a search asks of a row of logits: the best few, and log Σ exp of all. No torch here.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// The `best` largest of `count` numbers, largest first, equals by place; NaN is never among them.
// Where there are fewer: -∞ at place 0.
void best_of_row(const float* x, int64_t count, int64_t best, float* values, int64_t* places);

// -∞ for a row of -∞.
float log_sum_exp(const float* x, int64_t count);

}  // namespace rondo::kernels
