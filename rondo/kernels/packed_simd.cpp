// Token-by-token decoding: packed weights times a vector, norms of one row; compiled for each
// target.
#include <cmath>

#include "rondo/kernels/packed.h"
#include "rondo/kernels/vector_math.h"

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot be array elements.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/packed_simd.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/highway.h>

#include "rondo/kernels/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {

template <class Reader>
void multiply_rows(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y) {
  const auto* data = static_cast<const typename Reader::Number*>(w.data);
  multiply<Reader>(data, w.columns(), w.scale, x, first, last, y);
}

void matvec_of(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y) {
  if (w.format == PackedFormat::fp32) return multiply_rows<Fp32Reader>(w, x, first, last, y);
  if (w.format == PackedFormat::bf16) return multiply_rows<Bf16Reader>(w, x, first, last, y);
  multiply_rows<Int8Reader>(w, x, first, last, y);
}

// ---- one row ----------------------------------------------------------------------------------

// Σ (x - shift)².
float squares_of(const float* x, int64_t width, float shift) {
  const Lane d;
  Floats sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const Floats v = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift));
    sum = hn::MulAdd(v, v, sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < width; ++i) total += (x[i] - shift) * (x[i] - shift);
  return total;
}

void norm_one_of(const float* x, const float* weight, const float* bias, float epsilon,
                 int64_t width, float* y) {
  const float share = 1.0F / static_cast<float>(width);
  float mean = 0.0F;
  if (bias != nullptr) {
#pragma omp simd reduction(+ : mean)
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean *= share;
  }
  const float factor = 1.0F / std::sqrt(squares_of(x, width, mean) * share + epsilon);
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * weight[i];
  if (bias == nullptr) return;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) y[i] += bias[i];
}

void sum_one_of(const float* x, float a, const float* y, float b, int64_t width, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) to[i] = a * x[i] + b * y[i];
}

void normalize_one_of(float* x, int64_t width, float epsilon) {
  const float factor = 1.0F / std::sqrt(squares_of(x, width, 0.0F) + epsilon);
  for (int64_t i = 0; i < width; ++i) x[i] *= factor;
}

void gelu_one_of(float* x, int64_t count) {
  constexpr float kInverseRoot2 = 0.70710678118654752F;
  for (int64_t i = 0; i < count; ++i) {
    x[i] = 0.5F * x[i] * (1.0F + error_function(x[i] * kInverseRoot2));
  }
}

// ---- recurrent states -------------------------------------------------------------------------

void tanh_one_of(float* x, int64_t count) {
  constexpr float kFlat = 20.0F;  // beyond this, tanh is ±1 in fp32
  for (int64_t i = 0; i < count; ++i) {
    x[i] = 1.0F - 2.0F / (exponential(2.0F * within(x[i], kFlat)) + 1.0F);
  }
}

RONDO_INLINE float sigmoid(float x) {
  constexpr float kFlat = 80.0F;
  return 1.0F / (1.0F + exponential(-within(x, kFlat)));
}

void fixed_gate_of(const float* z, const float* keep, int64_t width, float* c) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) c[i] = c[i] * keep[i] + z[i] * (1.0F - keep[i]);
}

void lstm_gate_of(const float* z, const float* forget, const float* input, int64_t width,
                  float* c) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) c[i] = c[i] * sigmoid(forget[i]) + z[i] * sigmoid(input[i]);
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(matvec_of);
HWY_EXPORT(norm_one_of);
HWY_EXPORT(sum_one_of);
HWY_EXPORT(normalize_one_of);
HWY_EXPORT(gelu_one_of);
HWY_EXPORT(tanh_one_of);
HWY_EXPORT(fixed_gate_of);
HWY_EXPORT(lstm_gate_of);

void matvec(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y) {
  HWY_DYNAMIC_DISPATCH(matvec_of)(w, x, first, last, y);
}

void norm_one(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
              float* y) {
  HWY_DYNAMIC_DISPATCH(norm_one_of)(x, weight, bias, epsilon, width, y);
}

void sum_one(const float* x, float a, const float* y, float b, int64_t width, float* to) {
  HWY_DYNAMIC_DISPATCH(sum_one_of)(x, a, y, b, width, to);
}

void normalize_one(float* x, int64_t width, float epsilon) {
  HWY_DYNAMIC_DISPATCH(normalize_one_of)(x, width, epsilon);
}

void relu_one(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] > 0.0F ? x[i] : 0.0F;
}

void gelu_one(float* x, int64_t count) { HWY_DYNAMIC_DISPATCH(gelu_one_of)(x, count); }

void tanh_one(float* x, int64_t count) { HWY_DYNAMIC_DISPATCH(tanh_one_of)(x, count); }

void fixed_gate_one(const float* z, const float* keep, int64_t width, float* c) {
  HWY_DYNAMIC_DISPATCH(fixed_gate_of)(z, keep, width, c);
}

void lstm_gate_one(const float* z, const float* forget, const float* input, int64_t width,
                   float* c) {
  HWY_DYNAMIC_DISPATCH(lstm_gate_of)(z, forget, input, width, c);
}

}  // namespace rondo::kernels
#endif
