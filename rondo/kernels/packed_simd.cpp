// Reading one token at a time: products of packed weights with a vector, attention of one query,
// norms of one row; compiled for each kind of CPU.
#include <cmath>

#include "rondo/kernels/packed.h"
#include "rondo/kernels/vector_math.h"

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot stand in arrays.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/packed_simd.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {  // names of the attention kernels are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;

using Lane = hn::CappedTag<float, kPanel>;
using Floats = hn::Vec<Lane>;
constexpr int64_t kLanes = hn::MaxLanes(Lane());
constexpr int64_t kParts = kPanel / kLanes;               // vectors in a panel
constexpr int64_t kGroup = kLanes >= 8 ? kLanes / 4 : 1;  // panels at once: 8 sums in flight

// Readers give the weights of panel rows [part · lanes, ...) for kStep columns from `column` on.
struct Fp32Reader {
  using Number = float;
  static constexpr int64_t kStep = 2;
  static HWY_INLINE void read(const float* panel, int64_t column, int64_t part, Floats* w) {
    const Lane d;
    const float* at = panel + column * kPanel + part * kLanes;
    w[0] = hn::Load(d, at);
    w[1] = hn::Load(d, at + kPanel);
  }
};

struct Bf16Reader {
  using Number = uint16_t;
  static constexpr int64_t kStep = 2;
  static HWY_INLINE void read(const uint16_t* panel, int64_t column, int64_t part, Floats* w) {
    const Lane d;
    const hn::RebindToUnsigned<Lane> bits;
    // Two columns of a row share 32 bits, the first in the lower half.
    const auto* at = reinterpret_cast<const uint32_t*>(panel + column * kPanel) + part * kLanes;
    const auto both = hn::Load(bits, at);
    w[0] = hn::BitCast(d, hn::ShiftLeft<16>(both));
    w[1] = hn::BitCast(d, hn::And(both, hn::Set(bits, 0xffff0000U)));
  }
};

struct Int8Reader {
  using Number = int8_t;
  static constexpr int64_t kStep = 2;
  static HWY_INLINE void read(const int8_t* panel, int64_t column, int64_t part, Floats* w) {
    const Lane d;
    const hn::RebindToSigned<Lane> integers;
    const hn::Rebind<int8_t, Lane> bytes;
    const int8_t* at = panel + column * kPanel + part * kLanes;
    w[0] = hn::ConvertTo(d, hn::PromoteTo(integers, hn::Load(bytes, at)));
    w[1] = hn::ConvertTo(d, hn::PromoteTo(integers, hn::Load(bytes, at + kPanel)));
  }
};

// `Panels` panels that follow each other. Even and odd columns are summed apart: a sum waits for
// its last addition, so there must be several.
template <class Reader, int64_t Panels>
HWY_INLINE void multiply_panels(const typename Reader::Number* w, int64_t columns, const float* x,
                                const float* scale, float* y) {
  const Lane d;
  Floats sums[Panels * kParts][Reader::kStep];
  for (auto& sum : sums) {
    for (Floats& s : sum) s = hn::Zero(d);
  }
  for (int64_t i = 0; i < columns; i += Reader::kStep) {
    const Floats first = hn::Set(d, x[i]);
    const Floats second = hn::Set(d, x[i + 1]);
    for (int64_t p = 0; p < Panels * kParts; ++p) {
      Floats weights[Reader::kStep];
      Reader::read(w + p / kParts * columns * kPanel, i, p % kParts, weights);
      sums[p][0] = hn::MulAdd(weights[0], first, sums[p][0]);
      sums[p][1] = hn::MulAdd(weights[1], second, sums[p][1]);
    }
  }
  for (int64_t p = 0; p < Panels * kParts; ++p) {
    Floats sum = hn::Add(sums[p][0], sums[p][1]);
    if (scale != nullptr) sum = hn::Mul(sum, hn::LoadU(d, scale + p * kLanes));
    hn::StoreU(sum, d, y + p * kLanes);
  }
}

template <class Reader>
void multiply(const PackedMatrix& m, const float* x, int64_t first, int64_t last, float* y) {
  const auto* w = static_cast<const typename Reader::Number*>(m.data);
  const int64_t columns = m.columns();
  const auto scale = [&](int64_t panel) {
    return m.scale != nullptr ? m.scale + panel * kPanel : nullptr;
  };
  int64_t p = first;
  for (; p + kGroup <= last; p += kGroup) {
    multiply_panels<Reader, kGroup>(w + p * columns * kPanel, columns, x, scale(p), y + p * kPanel);
  }
  for (; p < last; ++p) {
    multiply_panels<Reader, 1>(w + p * columns * kPanel, columns, x, scale(p), y + p * kPanel);
  }
}

void matvec_of(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y) {
  if (w.format == PackedFormat::fp32) return multiply<Fp32Reader>(w, x, first, last, y);
  if (w.format == PackedFormat::bf16) return multiply<Bf16Reader>(w, x, first, last, y);
  multiply<Int8Reader>(w, x, first, last, y);
}

// ---- one row ----------------------------------------------------------------------------------

float sum_of(Floats v) { return hn::GetLane(hn::SumOfLanes(Lane(), v)); }

HWY_INLINE Floats load_floats(const float* x) { return hn::LoadU(Lane(), x); }

HWY_INLINE Floats load_floats(const Bf16* x) {
  const hn::RebindToUnsigned<Lane> bits;
  const hn::Rebind<uint16_t, Lane> halves;
  const auto wide = hn::PromoteTo(bits, hn::LoadU(halves, reinterpret_cast<const uint16_t*>(x)));
  return hn::BitCast(Lane(), hn::ShiftLeft<16>(wide));
}

// q · k_j for `Keys` keys.
template <int64_t Keys, class Number>
HWY_INLINE void scores_of(const OneQuery<Number>& a, int64_t j, float* scores) {
  const Lane d;
  const Number* k = a.keys + j * a.stride;
  Floats sums[Keys];
  for (Floats& s : sums) s = hn::Zero(d);
  int64_t c = 0;
  for (; c + kLanes <= a.width; c += kLanes) {
    const Floats q = hn::LoadU(d, a.q + c);
    for (int64_t n = 0; n < Keys; ++n) {
      sums[n] = hn::MulAdd(q, load_floats(k + n * a.stride + c), sums[n]);
    }
  }
  for (int64_t n = 0; n < Keys; ++n) {
    float sum = sum_of(sums[n]);
    for (int64_t r = c; r < a.width; ++r) sum += a.q[r] * widen(k[n * a.stride + r]);
    scores[j + n] = sum;
  }
}

// Σ_j p_j v_j for columns [c, c + Vectors · lanes).
template <int64_t Vectors, class Number>
HWY_INLINE void values_of(const OneQuery<Number>& a, const float* p, int64_t c, float factor,
                          float* out) {
  const Lane d;
  Floats sums[Vectors][2];
  for (auto& sum : sums) sum[0] = sum[1] = hn::Zero(d);
  int64_t j = 0;
  for (; j + 2 <= a.count; j += 2) {
    const Floats first = hn::Set(d, p[j]);
    const Floats second = hn::Set(d, p[j + 1]);
    const Number* v = a.values + j * a.stride + c;
    for (int64_t n = 0; n < Vectors; ++n) {
      sums[n][0] = hn::MulAdd(first, load_floats(v + n * kLanes), sums[n][0]);
      sums[n][1] = hn::MulAdd(second, load_floats(v + a.stride + n * kLanes), sums[n][1]);
    }
  }
  for (int64_t n = 0; n < Vectors; ++n) {
    Floats sum = hn::Add(sums[n][0], sums[n][1]);
    if (j < a.count) {
      sum =
          hn::MulAdd(hn::Set(d, p[j]), load_floats(a.values + j * a.stride + c + n * kLanes), sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(d, factor)), d, out + c + n * kLanes);
  }
}

template <class Number>
HWY_INLINE void attend_query(const OneQuery<Number>& a, float* scores, float* out) {
  constexpr int64_t kKeys = 4;
  int64_t j = 0;
  for (; j + kKeys <= a.count; j += kKeys) scores_of<kKeys>(a, j, scores);
  for (; j < a.count; ++j) scores_of<1>(a, j, scores);
  if (a.bias != nullptr) {
    for (j = 0; j < a.count; ++j) scores[j] += a.bias[j];
  }
  float highest = -INFINITY;
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < a.count; ++i) {
    scores[i] *= a.scale;
    highest = scores[i] > highest ? scores[i] : highest;
  }
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < a.count; ++i) {
    scores[i] = exponential(scores[i] - highest);
    sum += scores[i];
  }
  const float factor = a.count > 0 ? 1.0F / sum : 0.0F;
  constexpr int64_t kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * kLanes <= a.width; c += kVectors * kLanes) {
    values_of<kVectors>(a, scores, c, factor, out);
  }
  for (; c + kLanes <= a.width; c += kLanes) values_of<1>(a, scores, c, factor, out);
  for (; c < a.width; ++c) {
    float value = 0.0F;
    for (j = 0; j < a.count; ++j) value += scores[j] * widen(a.values[j * a.stride + c]);
    out[c] = value * factor;
  }
}

void attend_exact(const OneQuery<float>& a, float* scores, float* out) {
  attend_query(a, scores, out);
}
void attend_rounded(const OneQuery<Bf16>& a, float* scores, float* out) {
  attend_query(a, scores, out);
}

// Σ (x - shift)².
float squares_of(const float* x, int64_t width, float shift) {
  const Lane d;
  Floats sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const Floats v = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift));
    sum = hn::MulAdd(v, v, sum);
  }
  float total = sum_of(sum);
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
  for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * weight[i];
  if (bias == nullptr) return;
  for (int64_t i = 0; i < width; ++i) y[i] += bias[i];
}

void normalise_one_of(float* x, int64_t width, float epsilon) {
  const float factor = 1.0F / std::sqrt(squares_of(x, width, 0.0F) + epsilon);
  for (int64_t i = 0; i < width; ++i) x[i] *= factor;
}

void gelu_one_of(float* x, int64_t count) {
  constexpr float kInverseRoot2 = 0.70710678118654752F;
  for (int64_t i = 0; i < count; ++i) {
    x[i] = 0.5F * x[i] * (1.0F + error_function(x[i] * kInverseRoot2));
  }
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(matvec_of);
HWY_EXPORT(attend_exact);
HWY_EXPORT(attend_rounded);
HWY_EXPORT(norm_one_of);
HWY_EXPORT(normalise_one_of);
HWY_EXPORT(gelu_one_of);

void matvec(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y) {
  HWY_DYNAMIC_DISPATCH(matvec_of)(w, x, first, last, y);
}

void attend_one(const OneQuery<float>& query, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(attend_exact)(query, scores, out);
}
void attend_one(const OneQuery<Bf16>& query, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(attend_rounded)(query, scores, out);
}

void norm_one(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
              float* y) {
  HWY_DYNAMIC_DISPATCH(norm_one_of)(x, weight, bias, epsilon, width, y);
}

void normalise_one(float* x, int64_t width, float epsilon) {
  HWY_DYNAMIC_DISPATCH(normalise_one_of)(x, width, epsilon);
}

void relu_one(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] > 0.0F ? x[i] : 0.0F;
}

void gelu_one(float* x, int64_t count) { HWY_DYNAMIC_DISPATCH(gelu_one_of)(x, count); }

}  // namespace rondo::kernels
#endif
