// Norms. A row stays in the first cache while it is read twice; sums for the weights are kept by
// piece (a fixed number of rows) and added in order at the end.
#include "rondo/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

[[maybe_unused]] constexpr int64_t kWorthNormThreads = 1 << 14;  // entries

// At most 64 pieces, so that their sums take little room.
int64_t norm_piece_rows(int64_t rows) { return std::max<int64_t>(16, (rows + 63) / 64); }

// How a row is normalised. `share`: of every square in what the row is divided by.
struct RowLaw {
  float epsilon = 0.0F;
  float share = 1.0F;
  bool centred = true;
};

RowLaw law_of(const NormShape& shape) {
  const float share = shape.summed ? 1.0F : 1.0F / static_cast<float>(shape.width);
  return {static_cast<float>(shape.epsilon), share, shape.centred};
}

struct RowStatistics {
  float mean = 0.0F;
  float factor = 0.0F;
};

template <class In>
RONDO_INLINE RowStatistics statistics_of(const In* x, int64_t width, const RowLaw& law) {
  const float share = law.share;
  float sum = 0.0F;
  if (law.centred) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += widen(x[i]);
  }
  const float mean = sum * share;
  float squares = 0.0F;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < width; ++i) {
    const float d = widen(x[i]) - mean;
    squares += d * d;
  }
  return {mean, 1.0F / std::sqrt(squares * share + law.epsilon)};
}

template <class In, class Out>
RONDO_INLINE RowStatistics normalise(const In* __restrict x, const float* __restrict weight,
                                     const float* __restrict bias, Out* __restrict y, int64_t width,
                                     const RowLaw& law) {
  const RowStatistics s = statistics_of(x, width, law);
  if (bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      narrow((widen(x[i]) - s.mean) * s.factor * weight[i] + bias[i], y[i]);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      narrow((widen(x[i]) - s.mean) * s.factor * weight[i], y[i]);
    }
  }
  return s;
}

// n = (x - mean) · factor is the normalised row, h = dy · weight its gradient;
// dx = factor · (h - mean of h - n · mean of n·h), where RMS norm has no mean of h. `also` (may be
// null) is added to it.
template <class In, class Out>
RONDO_INLINE void normalise_back(const In* __restrict x, const float* __restrict weight,
                                 RowStatistics s, const Out* __restrict dy,
                                 const float* __restrict also, In* __restrict dx, int64_t width,
                                 const RowLaw& law, float* __restrict weight_sums,
                                 float* __restrict bias_sums) {
  const float share = law.share;
  float h_sum = 0.0F;
  float product_sum = 0.0F;
#pragma omp simd reduction(+ : h_sum, product_sum)
  for (int64_t i = 0; i < width; ++i) {
    const float g = widen(dy[i]);
    const float n = (widen(x[i]) - s.mean) * s.factor;
    h_sum += g * weight[i];
    product_sum += g * weight[i] * n;
    weight_sums[i] += g * n;
    bias_sums[i] += g;
  }
  const float h_mean = law.centred ? h_sum * share : 0.0F;
  const float product_mean = product_sum * share;
  if (also != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float n = (widen(x[i]) - s.mean) * s.factor;
      narrow(s.factor * (widen(dy[i]) * weight[i] - h_mean - n * product_mean) + also[i], dx[i]);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float n = (widen(x[i]) - s.mean) * s.factor;
      narrow(s.factor * (widen(dy[i]) * weight[i] - h_mean - n * product_mean), dx[i]);
    }
  }
}

template <class Out>
RONDO_INLINE RowStatistics normalise_sum(const WeightedSum<float>& in, float* __restrict sum,
                                         const float* weight, const float* bias, Out* y,
                                         const RowLaw& law) {
  const float* __restrict const x = in.x;
  const float* __restrict const branch = in.y;
  const float a = in.a;
  const float b = in.b;
#pragma omp simd
  for (int64_t i = 0; i < in.count; ++i) sum[i] = a * x[i] + b * branch[i];
  return normalise(sum, weight, bias, y, in.count, law);
}

// The compiler clones functions, not templates: one of each kind for every pair of types.
#define RONDO_NORM_ROWS(In, Out)                                                       \
  RONDO_CLONES                                                                         \
  RowStatistics norm_row(const In* x, const float* weight, const float* bias, Out* y,  \
                         int64_t width, const RowLaw& law) {                           \
    return normalise(x, weight, bias, y, width, law);                                  \
  }                                                                                    \
  RONDO_CLONES                                                                         \
  void norm_row_back(const In* x, const float* weight, RowStatistics s, const Out* dy, \
                     const float* also, In* dx, int64_t width, const RowLaw& law,      \
                     float* weight_sums, float* bias_sums) {                           \
    normalise_back(x, weight, s, dy, also, dx, width, law, weight_sums, bias_sums);    \
  }
RONDO_NORM_ROWS(float, float)
RONDO_NORM_ROWS(float, Bf16)
RONDO_NORM_ROWS(Bf16, float)
RONDO_NORM_ROWS(Bf16, Bf16)
#undef RONDO_NORM_ROWS

#define RONDO_NORM_SUMS(Out)                                                                \
  RONDO_CLONES                                                                              \
  RowStatistics norm_sum_row(const WeightedSum<float>& in, float* sum, const float* weight, \
                             const float* bias, Out* y, const RowLaw& law) {                \
    return normalise_sum(in, sum, weight, bias, y, law);                                    \
  }
RONDO_NORM_SUMS(float)
RONDO_NORM_SUMS(Bf16)
#undef RONDO_NORM_SUMS

// Σ over pieces of sums [pieces, 2, width], row `which`.
void add_pieces(const std::vector<float>& sums, int64_t which, int64_t width, float* total) {
  const int64_t pieces = static_cast<int64_t>(sums.size()) / (2 * width);
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0.0;
    for (int64_t p = 0; p < pieces; ++p) {
      sum += static_cast<double>(sums[static_cast<size_t>((2 * p + which) * width + i)]);
    }
    total[i] = static_cast<float>(sum);
  }
}

}  // namespace

template <class In, class Out>
void norm(const NormShape& shape, const In* x, const float* weight, const float* bias, Out* y,
          const NormStatistics& statistics) {
  const RowLaw law = law_of(shape);
#pragma omp parallel for schedule(static) if (shape.rows * shape.width > kWorthNormThreads)
  for (int64_t r = 0; r < shape.rows; ++r) {
    const RowStatistics s =
        norm_row(x + r * shape.width, weight, bias, y + r * shape.width, shape.width, law);
    statistics.mean[r] = s.mean;
    statistics.factor[r] = s.factor;
  }
}

template <class Out>
void norm_of_sum(const NormShape& shape, const WeightedSum<float>& in, float* sum,
                 const float* weight, const float* bias, Out* y, const NormStatistics& statistics) {
  const int64_t width = shape.width;
  const RowLaw law = law_of(shape);
#pragma omp parallel for schedule(static) if (shape.rows * width > kWorthNormThreads)
  for (int64_t r = 0; r < shape.rows; ++r) {
    const int64_t at = r * width;
    const WeightedSum<float> row = {width, in.x + at, in.y + at, in.a, in.b};
    const RowStatistics s = norm_sum_row(row, sum + at, weight, bias, y + at, law);
    statistics.mean[r] = s.mean;
    statistics.factor[r] = s.factor;
  }
}

template <class In, class Out>
void norm_gradient(const NormShape& shape, const In* x, const float* weight,
                   const NormStatistics& statistics, const Out* y_gradient, In* x_gradient,
                   float* weight_gradient, float* bias_gradient, const float* also) {
  const int64_t width = shape.width;
  const RowLaw law = law_of(shape);
  const int64_t per_piece = norm_piece_rows(shape.rows);
  const int64_t pieces = (shape.rows + per_piece - 1) / per_piece;
  std::vector<float> sums(static_cast<size_t>(pieces * 2 * width));  // [pieces, 2, width]
#pragma omp parallel for schedule(static) if (shape.rows * width > kWorthNormThreads)
  for (int64_t p = 0; p < pieces; ++p) {
    float* const weight_sums = sums.data() + 2 * p * width;
    const int64_t last = std::min(shape.rows, (p + 1) * per_piece);
    for (int64_t r = p * per_piece; r < last; ++r) {
      norm_row_back(x + r * width, weight, {statistics.mean[r], statistics.factor[r]},
                    y_gradient + r * width, also == nullptr ? nullptr : also + r * width,
                    x_gradient + r * width, width, law, weight_sums, weight_sums + width);
    }
  }
  if (weight_gradient != nullptr) add_pieces(sums, 0, width, weight_gradient);
  if (bias_gradient != nullptr) add_pieces(sums, 1, width, bias_gradient);
}

#define RONDO_NORM(In, Out)                                                                     \
  template void norm(const NormShape&, const In*, const float*, const float*, Out*,             \
                     const NormStatistics&);                                                    \
  template void norm_gradient(const NormShape&, const In*, const float*, const NormStatistics&, \
                              const Out*, In*, float*, float*, const float*);
RONDO_NORM(float, float)
RONDO_NORM(float, Bf16)
RONDO_NORM(Bf16, float)
RONDO_NORM(Bf16, Bf16)
#undef RONDO_NORM
template void norm_of_sum(const NormShape&, const WeightedSum<float>&, float*, const float*,
                          const float*, float*, const NormStatistics&);
template void norm_of_sum(const NormShape&, const WeightedSum<float>&, float*, const float*,
                          const float*, Bf16*, const NormStatistics&);

}  // namespace rondo::kernels
