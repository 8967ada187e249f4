// Reductions in one or two passes over a row of logits.
#include "rondo/kernels/best_of_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

RONDO_CLONES float largest_of(const float* x, int64_t count) {
  float largest = kNone;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

RONDO_CLONES float sum_of_exponentials(const float* x, int64_t count, float shift) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += exponential(x[i] - shift);
  return sum;
}

}  // namespace

void best_of_row(const float* x, int64_t count, int64_t best, float* values, int64_t* places) {
  std::fill_n(values, best, kNone);
  std::fill_n(places, best, 0);
  constexpr int64_t kBlock = 64;  // most blocks contain no candidate
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(first + kBlock, count);
    if (!(largest_of(x + first, last - first) > values[best - 1])) continue;
    for (int64_t i = first; i < last; ++i) {
      if (!(x[i] > values[best - 1])) continue;
      int64_t rank = best - 1;
      for (; rank > 0 && x[i] > values[rank - 1]; --rank) {
        values[rank] = values[rank - 1];
        places[rank] = places[rank - 1];
      }
      values[rank] = x[i];
      places[rank] = i;
    }
  }
}

float log_sum_exp(const float* x, int64_t count) {
  const float largest = largest_of(x, count);
  if (!std::isfinite(largest)) return largest;
  return largest + std::log(sum_of_exponentials(x, count, largest));
}

}  // namespace rondo::kernels
