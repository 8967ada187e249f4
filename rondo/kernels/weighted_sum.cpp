// The gradients of the weights are summed per piece of fixed size, then in order, so they do not
// depend on the number of threads.
#include "rondo/kernels/weighted_sum.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kSumPiece = 1 << 10;  // values: fp32 sums stay short, longer ones are double

RONDO_CLONES
void sum_piece(const float* __restrict x, float a, const float* __restrict y, float b,
               float* __restrict out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = a * x[i] + b * y[i];
}

RONDO_CLONES
WeightGradients sum_piece_back(const float* __restrict x, float a, const float* __restrict y,
                               float b, const float* __restrict g, float* __restrict dx,
                               float* __restrict dy, int64_t count) {
  float da = 0.0F;
  float db = 0.0F;
#pragma omp simd reduction(+ : da, db)
  for (int64_t i = 0; i < count; ++i) {
    da += g[i] * x[i];
    db += g[i] * y[i];
    dx[i] = a * g[i];
    dy[i] = b * g[i];
  }
  return {static_cast<double>(da), static_cast<double>(db)};
}

int64_t sum_pieces(int64_t count) { return (count + kSumPiece - 1) / kSumPiece; }

}  // namespace

void weighted_sum(const WeightedSum& in, float* out) {
  parallel_for(sum_pieces(in.count), in.count > kWorthRowThreads, [&](int64_t p) {
    const int64_t at = p * kSumPiece;
    sum_piece(in.x + at, in.a, in.y + at, in.b, out + at, std::min(kSumPiece, in.count - at));
  });
}

WeightGradients weighted_sum_gradient(const WeightedSum& in, const float* out_gradient,
                                      float* x_gradient, float* y_gradient) {
  std::vector<WeightGradients> parts(static_cast<size_t>(sum_pieces(in.count)));
  parallel_for(sum_pieces(in.count), in.count > kWorthRowThreads, [&](int64_t p) {
    const int64_t at = p * kSumPiece;
    parts[static_cast<size_t>(p)] =
        sum_piece_back(in.x + at, in.a, in.y + at, in.b, out_gradient + at, x_gradient + at,
                       y_gradient + at, std::min(kSumPiece, in.count - at));
  });
  WeightGradients total;
  for (const WeightGradients& part : parts) {
    total.a += part.a;
    total.b += part.b;
  }
  return total;
}

}  // namespace rondo::kernels
