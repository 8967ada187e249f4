// Softmax cross-entropy. A row is read in stretches that stay in the first cache: their largest
// number is found before their exponentials are summed, and the sum so far is rescaled when a
// larger one turns up.
#include "rondo/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kStretchOfRow = 1024;
[[maybe_unused]] constexpr int64_t kWorthThreads = 1 << 15;  // entries

// What one pass over a row finds.
struct RowSums {
  float largest = 0.0F;
  double log_sum = 0.0;  // log Σ exp(x - largest)
  double sum = 0.0;      // Σ x, or Σ target · x
  double mass = 0.0;     // Σ target
};

// What RowSums::sum is of.
enum class Summed { nothing, logits, targets };

template <class Number>
RONDO_INLINE float stretch_largest(const Number* x, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) {
    const float v = widen(x[i]);
    largest = v > largest ? v : largest;
  }
  return largest;
}

template <class Number>
RONDO_INLINE float stretch_exponentials(const Number* x, int64_t count, float largest) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += exponential(widen(x[i]) - largest);
  return sum;
}

template <class Number>
RONDO_INLINE float stretch_sum(const Number* x, int64_t count) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += widen(x[i]);
  return sum;
}

template <class Number>
RONDO_INLINE float stretch_product(const Number* x, const float* target, int64_t count) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += widen(x[i]) * target[i];
  return sum;
}

// `target` is read if the sums are of targets.
template <class Number>
RONDO_INLINE RowSums pass_over_row(const Number* x, const float* target, int64_t classes,
                                   Summed summed) {
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
    // Nothing but -∞ so far: a difference with that would be NaN, and NaN itself must remain one.
    const float base = std::isinf(largest) && largest < 0.0F ? 0.0F : largest;
    exponentials += static_cast<double>(stretch_exponentials(x + first, count, base));
    if (summed == Summed::logits) {
      sums.sum += static_cast<double>(stretch_sum(x + first, count));
    } else if (summed == Summed::targets) {
      sums.sum += static_cast<double>(stretch_product(x + first, target + first, count));
      sums.mass += static_cast<double>(stretch_sum(target + first, count));
    }
  }
  sums.largest = std::isinf(largest) && largest < 0.0F ? 0.0F : largest;
  sums.log_sum = std::log(exponentials);
  return sums;
}

RONDO_CLONES
RowSums row_sums(const float* x, const float* target, int64_t classes, Summed summed) {
  return pass_over_row(x, target, classes, summed);
}
RONDO_CLONES
RowSums row_sums(const Bf16* x, const float* target, int64_t classes, Summed summed) {
  return pass_over_row(x, target, classes, summed);
}

struct SoftmaxOfRow {
  float largest, log_sum;
};

// gradient = scale · softmax - subtract.
template <class Number, class Out>
RONDO_INLINE void write_softmax(const Number* x, int64_t classes, SoftmaxOfRow row, float scale,
                                float subtract, Out* gradient) {
#pragma omp simd
  for (int64_t i = 0; i < classes; ++i) {
    narrow(scale * exponential((widen(x[i]) - row.largest) - row.log_sum) - subtract, gradient[i]);
  }
}

RONDO_CLONES
void row_gradient(const float* x, int64_t classes, SoftmaxOfRow row, float scale, float subtract,
                  float* gradient) {
  write_softmax(x, classes, row, scale, subtract, gradient);
}
RONDO_CLONES
void row_gradient(const Bf16* x, int64_t classes, SoftmaxOfRow row, float scale, float subtract,
                  Bf16* gradient) {
  write_softmax(x, classes, row, scale, subtract, gradient);
}
RONDO_CLONES
void row_gradient(const float* x, int64_t classes, SoftmaxOfRow row, float scale, float subtract,
                  Bf16* gradient) {
  write_softmax(x, classes, row, scale, subtract, gradient);
}

// gradient = scale · softmax - factor · target.
template <class Number>
RONDO_INLINE void write_soft(const Number* __restrict x, const float* __restrict target,
                             int64_t classes, SoftmaxOfRow row, float scale, float factor,
                             Number* __restrict gradient) {
#pragma omp simd
  for (int64_t i = 0; i < classes; ++i) {
    narrow(scale * exponential((widen(x[i]) - row.largest) - row.log_sum) - factor * target[i],
           gradient[i]);
  }
}

RONDO_CLONES
void soft_row_gradient(const float* x, const float* target, int64_t classes, SoftmaxOfRow row,
                       float scale, float factor, float* gradient) {
  write_soft(x, target, classes, row, scale, factor, gradient);
}
RONDO_CLONES
void soft_row_gradient(const Bf16* x, const float* target, int64_t classes, SoftmaxOfRow row,
                       float scale, float factor, Bf16* gradient) {
  write_soft(x, target, classes, row, scale, factor, gradient);
}

template <class Number>
void labelled_losses(const LabelledRows<Number>& in, const SoftmaxRows& rows, double* losses) {
  const double everywhere = in.smoothing / static_cast<double>(in.classes);
  const Summed summed = in.smoothing > 0.0 ? Summed::logits : Summed::nothing;
#pragma omp parallel for schedule(static) if (in.rows * in.classes > kWorthThreads)
  for (int64_t r = 0; r < in.rows; ++r) {
    rows.largest[r] = rows.log_sum[r] = 0.0F;
    losses[r] = 0.0;
    if (in.labels[r] < 0) continue;
    const Number* x = in.logits + r * in.classes;
    const RowSums sums = row_sums(x, nullptr, in.classes, summed);
    rows.largest[r] = sums.largest;
    rows.log_sum[r] = static_cast<float>(sums.log_sum);
    const auto label = static_cast<double>(widen(x[in.labels[r]]));
    losses[r] = static_cast<double>(sums.largest) + sums.log_sum - (1.0 - in.smoothing) * label;
    if (in.smoothing > 0.0) losses[r] -= everywhere * sums.sum;
  }
}

template <class Number, class Out>
void labelled_gradient(const LabelledRows<Number>& in, const SoftmaxRows& rows, double factor,
                       Out* gradient) {
  const auto scale = static_cast<float>(factor);
  const auto everywhere =
      static_cast<float>(factor * in.smoothing / static_cast<double>(in.classes));
  const auto at_label = static_cast<float>(factor * (1.0 - in.smoothing)) + everywhere;
#pragma omp parallel for schedule(static) if (in.rows * in.classes > kWorthThreads)
  for (int64_t r = 0; r < in.rows; ++r) {
    const Number* x = in.logits + r * in.classes;
    Out* out = gradient + r * in.classes;
    const int64_t label = in.labels[r];
    if (label < 0) {
      std::fill(out, out + in.classes, Out{});
      continue;
    }
    const SoftmaxOfRow row = {rows.largest[r], rows.log_sum[r]};
    const float p = exponential((widen(x[label]) - row.largest) - row.log_sum);
    row_gradient(x, in.classes, row, scale, everywhere, out);
    narrow(scale * p - at_label, out[label]);
  }
}

template <class Number>
void targeted_losses(const TargetedRows<Number>& in, const SoftmaxRows& rows, float* masses,
                     double* losses) {
#pragma omp parallel for schedule(static) if (in.rows * in.classes > kWorthThreads)
  for (int64_t r = 0; r < in.rows; ++r) {
    const int64_t at = r * in.classes;
    const RowSums sums = row_sums(in.logits + at, in.targets + at, in.classes, Summed::targets);
    rows.largest[r] = sums.largest;
    rows.log_sum[r] = static_cast<float>(sums.log_sum);
    masses[r] = static_cast<float>(sums.mass);
    losses[r] = sums.mass * (static_cast<double>(sums.largest) + sums.log_sum) - sums.sum;
  }
}

template <class Number>
void targeted_gradient(const TargetedRows<Number>& in, const SoftmaxRows& rows, const float* masses,
                       double factor, Number* gradient) {
  const auto scale = static_cast<float>(factor);
#pragma omp parallel for schedule(static) if (in.rows * in.classes > kWorthThreads)
  for (int64_t r = 0; r < in.rows; ++r) {
    const int64_t at = r * in.classes;
    soft_row_gradient(in.logits + at, in.targets + at, in.classes,
                      {rows.largest[r], rows.log_sum[r]}, scale * masses[r], scale, gradient + at);
  }
}

}  // namespace

void cross_entropy(const LabelledRows<float>& in, const SoftmaxRows& rows, double* losses) {
  labelled_losses(in, rows, losses);
}
void cross_entropy(const LabelledRows<Bf16>& in, const SoftmaxRows& rows, double* losses) {
  labelled_losses(in, rows, losses);
}

void cross_entropy_gradient(const LabelledRows<float>& in, const SoftmaxRows& rows, double factor,
                            float* gradient) {
  labelled_gradient(in, rows, factor, gradient);
}
void cross_entropy_gradient(const LabelledRows<Bf16>& in, const SoftmaxRows& rows, double factor,
                            Bf16* gradient) {
  labelled_gradient(in, rows, factor, gradient);
}
void cross_entropy_gradient(const LabelledRows<float>& in, const SoftmaxRows& rows, double factor,
                            Bf16* gradient) {
  labelled_gradient(in, rows, factor, gradient);
}

void soft_cross_entropy(const TargetedRows<float>& in, const SoftmaxRows& rows, float* masses,
                        double* losses) {
  targeted_losses(in, rows, masses, losses);
}
void soft_cross_entropy(const TargetedRows<Bf16>& in, const SoftmaxRows& rows, float* masses,
                        double* losses) {
  targeted_losses(in, rows, masses, losses);
}

void soft_cross_entropy_gradient(const TargetedRows<float>& in, const SoftmaxRows& rows,
                                 const float* masses, double factor, float* gradient) {
  targeted_gradient(in, rows, masses, factor, gradient);
}
void soft_cross_entropy_gradient(const TargetedRows<Bf16>& in, const SoftmaxRows& rows,
                                 const float* masses, double factor, Bf16* gradient) {
  targeted_gradient(in, rows, masses, factor, gradient);
}

}  // namespace rondo::kernels
