// A row stays in the L1 cache while it is read twice; sums for the weights are kept per piece (a
// fixed number of rows) and added in order at the end.
#include "rondo/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

// How a row is normalized. `share`: the weight of each square in the denominator.
struct RowRule {
  float epsilon = 0.0F;
  float share = 1.0F;
  bool centered = true;
};

RowRule rule_of(const NormShape& shape) {
  const float share = shape.summed ? 1.0F : 1.0F / static_cast<float>(shape.width);
  return {static_cast<float>(shape.epsilon), share, shape.centered};
}

struct RowStatistics {
  float mean = 0.0F;
  float factor = 0.0F;
};

RONDO_INLINE RowStatistics statistics_of(const float* x, int64_t width, const RowRule& rule) {
  const float share = rule.share;
  float sum = 0.0F;
  if (rule.centered) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += x[i];
  }
  const float mean = sum * share;
  float squares = 0.0F;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < width; ++i) {
    const float d = x[i] - mean;
    squares += d * d;
  }
  return {mean, 1.0F / std::sqrt(squares * share + rule.epsilon)};
}

template <class Out>
RONDO_INLINE RowStatistics normalize(const float* __restrict x, const float* __restrict weight,
                                     const float* __restrict bias, Out* __restrict y, int64_t width,
                                     const RowRule& rule) {
  const RowStatistics s = statistics_of(x, width, rule);
  if (bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      narrow((x[i] - s.mean) * s.factor * weight[i] + bias[i], y[i]);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      narrow((x[i] - s.mean) * s.factor * weight[i], y[i]);
    }
  }
  return s;
}

// n = (x - mean) · factor is the normalized row, h = dy · weight its gradient;
// dx = factor · (h - mean of h - n · mean of n·h), where RMS norm has no mean of h. `also` (may be
// null) is added to it.
template <class Out>
RONDO_INLINE void normalize_back(const float* __restrict x, const float* __restrict weight,
                                 RowStatistics s, const Out* __restrict dy,
                                 const float* __restrict also, float* __restrict dx, int64_t width,
                                 const RowRule& rule, float* __restrict weight_sums,
                                 float* __restrict bias_sums) {
  const float share = rule.share;
  float h_sum = 0.0F;
  float product_sum = 0.0F;
#pragma omp simd reduction(+ : h_sum, product_sum)
  for (int64_t i = 0; i < width; ++i) {
    const float g = widen(dy[i]);
    const float n = (x[i] - s.mean) * s.factor;
    h_sum += g * weight[i];
    product_sum += g * weight[i] * n;
    weight_sums[i] += g * n;
    bias_sums[i] += g;
  }
  const float h_mean = rule.centered ? h_sum * share : 0.0F;
  const float product_mean = product_sum * share;
  if (also != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float n = (x[i] - s.mean) * s.factor;
      dx[i] = s.factor * (widen(dy[i]) * weight[i] - h_mean - n * product_mean) + also[i];
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float n = (x[i] - s.mean) * s.factor;
      dx[i] = s.factor * (widen(dy[i]) * weight[i] - h_mean - n * product_mean);
    }
  }
}

template <class Out>
RONDO_INLINE RowStatistics normalize_sum(const WeightedSum& in, float* __restrict sum,
                                         const float* weight, const float* bias, Out* y,
                                         const RowRule& rule) {
  const float* __restrict const x = in.x;
  const float* __restrict const branch = in.y;
  const float a = in.a;
  const float b = in.b;
#pragma omp simd
  for (int64_t i = 0; i < in.count; ++i) sum[i] = a * x[i] + b * branch[i];
  return normalize(sum, weight, bias, y, in.count, rule);
}

// The compiler clones functions but not templates: one of each kind for either type.
#define RONDO_NORM_ROWS(Out)                                                              \
  RONDO_CLONES                                                                            \
  RowStatistics norm_row(const float* x, const float* weight, const float* bias, Out* y,  \
                         int64_t width, const RowRule& rule) {                            \
    return normalize(x, weight, bias, y, width, rule);                                    \
  }                                                                                       \
  RONDO_CLONES                                                                            \
  RowStatistics norm_sum_row(const WeightedSum& in, float* sum, const float* weight,      \
                             const float* bias, Out* y, const RowRule& rule) {            \
    return normalize_sum(in, sum, weight, bias, y, rule);                                 \
  }                                                                                       \
  RONDO_CLONES                                                                            \
  void norm_row_back(const float* x, const float* weight, RowStatistics s, const Out* dy, \
                     const float* also, float* dx, int64_t width, const RowRule& rule,    \
                     float* weight_sums, float* bias_sums) {                              \
    normalize_back(x, weight, s, dy, also, dx, width, rule, weight_sums, bias_sums);      \
  }
RONDO_NORM_ROWS(float)
RONDO_NORM_ROWS(Bf16)
#undef RONDO_NORM_ROWS

void keep(const NormStatistics& statistics, int64_t row, RowStatistics s) {
  statistics.mean[row] = s.mean;
  statistics.factor[row] = s.factor;
}

}  // namespace

template <class Out>
void norm(const NormShape& shape, const float* x, const float* weight, const float* bias, Out* y,
          const NormStatistics& statistics) {
  const int64_t width = shape.width;
  const RowRule rule = rule_of(shape);
  parallel_for(shape.rows, shape.rows * width > kWorthRowThreads, [&](int64_t r) {
    keep(statistics, r, norm_row(x + r * width, weight, bias, y + r * width, width, rule));
  });
}

template <class Out>
void norm_of_sum(const NormShape& shape, const WeightedSum& in, float* sum, const float* weight,
                 const float* bias, Out* y, const NormStatistics& statistics) {
  const int64_t width = shape.width;
  const RowRule rule = rule_of(shape);
  parallel_for(shape.rows, shape.rows * width > kWorthRowThreads, [&](int64_t r) {
    const int64_t at = r * width;
    const WeightedSum row = {width, in.x + at, in.y + at, in.a, in.b};
    keep(statistics, r, norm_sum_row(row, sum + at, weight, bias, y + at, rule));
  });
}

template <class Out>
void norm_gradient(const NormShape& shape, const float* x, const float* weight,
                   const NormStatistics& statistics, const Out* y_gradient, float* x_gradient,
                   float* weight_gradient, float* bias_gradient, const float* also) {
  const int64_t width = shape.width;
  const RowRule rule = rule_of(shape);
  const RowPieces pieces(shape.rows);
  std::vector<float> sums(static_cast<size_t>(pieces.count * 2 * width));  // [pieces, 2, width]
  parallel_for(pieces.count, shape.rows * width > kWorthRowThreads, [&](int64_t p) {
    float* const weight_sums = sums.data() + 2 * p * width;
    for (int64_t r = pieces.first(p); r < pieces.last(p); ++r) {
      norm_row_back(x + r * width, weight, {statistics.mean[r], statistics.factor[r]},
                    y_gradient + r * width, also == nullptr ? nullptr : also + r * width,
                    x_gradient + r * width, width, rule, weight_sums, weight_sums + width);
    }
  });
  add_pieces(sums.data(), pieces.count, 2 * width, width, weight_gradient);
  if (bias_gradient != nullptr) {
    add_pieces(sums.data() + width, pieces.count, 2 * width, width, bias_gradient);
  }
}

#define RONDO_NORM(Out)                                                                            \
  template void norm(const NormShape&, const float*, const float*, const float*, Out*,             \
                     const NormStatistics&);                                                       \
  template void norm_of_sum(const NormShape&, const WeightedSum&, float*, const float*,            \
                            const float*, Out*, const NormStatistics&);                            \
  template void norm_gradient(const NormShape&, const float*, const float*, const NormStatistics&, \
                              const Out*, float*, float*, float*, const float*);
RONDO_NORM(float)
RONDO_NORM(Bf16)
#undef RONDO_NORM

}  // namespace rondo::kernels
