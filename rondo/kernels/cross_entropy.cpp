// Softmax cross-entropy. A row is read in stretches that stay in the L1 cache: the maximum of a
// stretch is found before its exponentials are summed, and the running sum is rescaled when the
// maximum grows.
#include "rondo/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kStretchOfRow = 1024;

// Result of one pass over a row.
struct RowSums {
  float largest = 0.0F;
  double log_sum = 0.0;  // log Σ exp(x - largest)
  double sum = 0.0;      // Σ x, if requested
};

RONDO_INLINE float stretch_largest(const float* x, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

RONDO_INLINE float stretch_exponentials(const float* x, int64_t count, float largest) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += exponential(x[i] - largest);
  return sum;
}

RONDO_INLINE float stretch_sum(const float* x, int64_t count) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

RONDO_CLONES
RowSums row_sums(const float* x, int64_t classes, bool summed) {
  float largest = -std::numeric_limits<float>::infinity();
  double exponentials = 0.0;
  RowSums sums;
  for (int64_t first = 0; first < classes; first += kStretchOfRow) {
    const int64_t count = std::min(kStretchOfRow, classes - first);
    const float here = stretch_largest(x + first, count);
    if (here > largest) {
      exponentials *= static_cast<double>(exponential(largest - here));
      largest = here;
    }
    // Only -∞ so far: subtracting it would give NaN. An actual NaN must stay NaN.
    const float base = std::isinf(largest) && largest < 0.0F ? 0.0F : largest;
    exponentials += static_cast<double>(stretch_exponentials(x + first, count, base));
    if (summed) sums.sum += static_cast<double>(stretch_sum(x + first, count));
  }
  sums.largest = std::isinf(largest) && largest < 0.0F ? 0.0F : largest;
  sums.log_sum = std::log(exponentials);
  return sums;
}

struct SoftmaxOfRow {
  float largest, log_sum;
};

// gradient = scale · softmax - subtract.
template <class Out>
RONDO_INLINE void write_softmax(const float* x, int64_t classes, SoftmaxOfRow row, float scale,
                                float subtract, Out* gradient) {
#pragma omp simd
  for (int64_t i = 0; i < classes; ++i) {
    narrow(scale * exponential((x[i] - row.largest) - row.log_sum) - subtract, gradient[i]);
  }
}

RONDO_CLONES
void row_gradient(const float* x, int64_t classes, SoftmaxOfRow row, float scale, float subtract,
                  float* gradient) {
  write_softmax(x, classes, row, scale, subtract, gradient);
}
RONDO_CLONES
void row_gradient(const float* x, int64_t classes, SoftmaxOfRow row, float scale, float subtract,
                  Bf16* gradient) {
  write_softmax(x, classes, row, scale, subtract, gradient);
}

}  // namespace

void cross_entropy(const LabeledRows& in, const SoftmaxRows& rows, double* losses) {
  const double everywhere = in.smoothing / static_cast<double>(in.classes);
  parallel_for(in.rows, in.rows * in.classes > kWorthLossThreads, [&](int64_t r) {
    rows.largest[r] = rows.log_sum[r] = 0.0F;
    losses[r] = 0.0;
    if (in.labels[r] < 0) return;
    const float* x = in.logits + r * in.classes;
    const RowSums sums = row_sums(x, in.classes, in.smoothing > 0.0);
    rows.largest[r] = sums.largest;
    rows.log_sum[r] = static_cast<float>(sums.log_sum);
    const auto label = static_cast<double>(x[in.labels[r]]);
    losses[r] = static_cast<double>(sums.largest) + sums.log_sum - (1.0 - in.smoothing) * label;
    if (in.smoothing > 0.0) losses[r] -= everywhere * sums.sum;
  });
}

template <class Out>
void cross_entropy_gradient(const LabeledRows& in, const SoftmaxRows& rows, double factor,
                            Out* gradient) {
  const auto scale = static_cast<float>(factor);
  const auto everywhere =
      static_cast<float>(factor * in.smoothing / static_cast<double>(in.classes));
  const auto at_label = static_cast<float>(factor * (1.0 - in.smoothing)) + everywhere;
  parallel_for(in.rows, in.rows * in.classes > kWorthLossThreads, [&](int64_t r) {
    const float* x = in.logits + r * in.classes;
    Out* out = gradient + r * in.classes;
    const int64_t label = in.labels[r];
    if (label < 0) {
      std::fill(out, out + in.classes, Out{});
      return;
    }
    const SoftmaxOfRow row = {rows.largest[r], rows.log_sum[r]};
    const float p = exponential((x[label] - row.largest) - row.log_sum);
    row_gradient(x, in.classes, row, scale, everywhere, out);
    narrow(scale * p - at_label, out[label]);
  });
}

template void cross_entropy_gradient(const LabeledRows&, const SoftmaxRows&, double, float*);
template void cross_entropy_gradient(const LabeledRows&, const SoftmaxRows&, double, Bf16*);

}  // namespace rondo::kernels
