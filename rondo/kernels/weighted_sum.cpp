// Sums by two weights. The gradients of the weights are summed by piece, of a fixed size, and then
// in order: any number of threads gives the same.
#include "rondo/kernels/weighted_sum.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kSumPiece = 1 << 10;  // numbers: sums in fp32 stay short, longer ones are double
[[maybe_unused]] constexpr int64_t kWorthSumThreads = 1 << 14;

template <class Number>
RONDO_INLINE void sum_piece(const float* __restrict x, float a, const Number* __restrict y, float b,
                            float* __restrict out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = a * x[i] + b * widen(y[i]);
}

template <class Number>
RONDO_INLINE WeightGradients sum_piece_back(const float* __restrict x, float a,
                                            const Number* __restrict y, float b,
                                            const float* __restrict g, float* __restrict dx,
                                            Number* __restrict dy, int64_t count) {
  float da = 0.0F;
  float db = 0.0F;
#pragma omp simd reduction(+ : da, db)
  for (int64_t i = 0; i < count; ++i) {
    da += g[i] * x[i];
    db += g[i] * widen(y[i]);
    dx[i] = a * g[i];
    narrow(b * g[i], dy[i]);
  }
  return {static_cast<double>(da), static_cast<double>(db)};
}

// The compiler clones functions, not templates.
#define RONDO_SUM_PIECES(Number)                                                                   \
  RONDO_CLONES                                                                                     \
  void sum_forwards(const float* x, float a, const Number* y, float b, float* out, int64_t n) {    \
    sum_piece(x, a, y, b, out, n);                                                                 \
  }                                                                                                \
  RONDO_CLONES                                                                                     \
  WeightGradients sum_backwards(const float* x, float a, const Number* y, float b, const float* g, \
                                float* dx, Number* dy, int64_t n) {                                \
    return sum_piece_back(x, a, y, b, g, dx, dy, n);                                               \
  }
RONDO_SUM_PIECES(float)
RONDO_SUM_PIECES(Bf16)
#undef RONDO_SUM_PIECES

}  // namespace

template <class Number>
void weighted_sum(const WeightedSum<Number>& in, float* out) {
#pragma omp parallel for schedule(static) if (in.count > kWorthSumThreads)
  for (int64_t at = 0; at < in.count; at += kSumPiece) {
    sum_forwards(in.x + at, in.a, in.y + at, in.b, out + at, std::min(kSumPiece, in.count - at));
  }
}

template <class Number>
WeightGradients weighted_sum_gradient(const WeightedSum<Number>& in, const float* out_gradient,
                                      float* x_gradient, Number* y_gradient) {
  std::vector<WeightGradients> parts(static_cast<size_t>((in.count + kSumPiece - 1) / kSumPiece));
#pragma omp parallel for schedule(static) if (in.count > kWorthSumThreads)
  for (int64_t at = 0; at < in.count; at += kSumPiece) {
    parts[static_cast<size_t>(at / kSumPiece)] =
        sum_backwards(in.x + at, in.a, in.y + at, in.b, out_gradient + at, x_gradient + at,
                      y_gradient + at, std::min(kSumPiece, in.count - at));
  }
  WeightGradients total;
  for (const WeightGradients& part : parts) {
    total.a += part.a;
    total.b += part.b;
  }
  return total;
}

#define RONDO_WEIGHTED_SUM(Number)                                                                 \
  template void weighted_sum(const WeightedSum<Number>&, float*);                                  \
  template WeightGradients weighted_sum_gradient(const WeightedSum<Number>&, const float*, float*, \
                                                 Number*);
RONDO_WEIGHTED_SUM(float)
RONDO_WEIGHTED_SUM(Bf16)
#undef RONDO_WEIGHTED_SUM

}  // namespace rondo::kernels
