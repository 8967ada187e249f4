// Rows are split into stretches so that the bias gradient sums over the rows of a piece stay in the
// L1 cache.
#include "rondo/kernels/activation.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kActivationStretch = 1024;  // entries of a row

RONDO_INLINE float gelu(float x) { return 0.5F * x * (1.0F + error_function(x * 0.70710678F)); }

// NaN stays NaN, as in torch.
RONDO_INLINE float relu(float x) { return keep_if(!(x < 0.0F), x); }

template <class Number>
RONDO_INLINE void curve_row(const Number* __restrict x, const float* __restrict bias,
                            Number* __restrict y, int64_t count, Curve curve) {
  if (curve == Curve::gelu) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) narrow(gelu(widen(x[i]) + bias[i]), y[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) narrow(relu(widen(x[i]) + bias[i]), y[i]);
  }
}

// dx may be dy.
template <class Number>
RONDO_INLINE void curve_row_back(const Number* __restrict x, const float* __restrict bias,
                                 const Number* dy, Number* dx, float* __restrict sums,
                                 int64_t count, Curve curve) {
  if (curve == Curve::gelu) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float g = widen(dy[i]) * normal_slope(widen(x[i]) + bias[i]);
      narrow(g, dx[i]);
      sums[i] += g;
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float g = keep_if(!(widen(x[i]) + bias[i] <= 0.0F), widen(dy[i]));
      narrow(g, dx[i]);
      sums[i] += g;
    }
  }
}

// The compiler clones functions but not templates.
#define RONDO_CURVE_ROWS(Number)                                                                   \
  RONDO_CLONES                                                                                     \
  void curve_forwards(const Number* x, const float* bias, Number* y, int64_t count, Curve curve) { \
    curve_row(x, bias, y, count, curve);                                                           \
  }                                                                                                \
  RONDO_CLONES                                                                                     \
  void curve_backwards(const Number* x, const float* bias, const Number* dy, Number* dx,           \
                       float* sums, int64_t count, Curve curve) {                                  \
    curve_row_back(x, bias, dy, dx, sums, count, curve);                                           \
  }
RONDO_CURVE_ROWS(float)
RONDO_CURVE_ROWS(Bf16)
#undef RONDO_CURVE_ROWS

// Rows as the loops process them, and the bias they add. Without a bias, row boundaries do not
// matter: the data are one long row, cut into pieces of any width.
struct ActivationPlan {
  ActivationPlan(const ActivationShape& shape, const float* given)
      : total(shape.rows * shape.width),
        width(given == nullptr ? kActivationStretch : shape.width),
        pieces((total + width - 1) / std::max<int64_t>(1, width)),
        none(given == nullptr ? static_cast<size_t>(width) : 0),
        bias(given == nullptr ? none.data() : given) {}

  int64_t total, width;
  RowPieces pieces;
  std::vector<float> none;
  const float* bias;
};

}  // namespace

template <class Number>
void activate(const ActivationShape& shape, const Number* x, const float* bias, Number* y) {
  const ActivationPlan plan(shape, bias);
  parallel_for(plan.pieces.count, plan.total > kWorthRowThreads, [&](int64_t p) {
    for (int64_t r = plan.pieces.first(p); r < plan.pieces.last(p); ++r) {
      const int64_t at = r * plan.width;
      curve_forwards(x + at, plan.bias, y + at, std::min(plan.width, plan.total - at), shape.curve);
    }
  });
}

template <class Number>
void activate_gradient(const ActivationShape& shape, const Number* x, const float* bias,
                       const Number* y_gradient, Number* x_gradient, float* bias_gradient) {
  const ActivationPlan plan(shape, bias);
  const int64_t width = plan.width;
  std::vector<float> sums(static_cast<size_t>(plan.pieces.count * width));  // [pieces, width]
  parallel_for(plan.pieces.count, plan.total > kWorthRowThreads, [&](int64_t p) {
    for (int64_t first = 0; first < width; first += kActivationStretch) {
      const int64_t most = std::min(kActivationStretch, width - first);
      for (int64_t r = plan.pieces.first(p); r < plan.pieces.last(p); ++r) {
        const int64_t at = r * width + first;
        curve_backwards(x + at, plan.bias + first, y_gradient + at, x_gradient + at,
                        sums.data() + p * width + first, std::min(most, plan.total - at),
                        shape.curve);
      }
    }
  });
  if (bias == nullptr || bias_gradient == nullptr) return;
  add_pieces(sums.data(), plan.pieces.count, width, width, bias_gradient);
}

#define RONDO_ACTIVATE(Number)                                                          \
  template void activate(const ActivationShape&, const Number*, const float*, Number*); \
  template void activate_gradient(const ActivationShape&, const Number*, const float*,  \
                                  const Number*, Number*, float*);
RONDO_ACTIVATE(float)
RONDO_ACTIVATE(Bf16)
#undef RONDO_ACTIVATE

}  // namespace rondo::kernels
