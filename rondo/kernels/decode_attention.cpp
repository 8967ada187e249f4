// Single-query attention in fp32 and over bf16, compiled for each target.
#include "rondo/kernels/decode_attention.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/packed.h"

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot be array elements.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/decode_attention.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/highway.h>

#include "rondo/kernels/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {

// scores → e^(scores - largest); returns 1 / their sum.
HWY_INLINE float exponentials(const float* bias, float scale, int64_t count, float* scores) {
  if (bias != nullptr) {
    for (int64_t j = 0; j < count; ++j) scores[j] += bias[j];
  }
  float highest = -INFINITY;
#pragma omp simd reduction(max : highest)
  for (int64_t j = 0; j < count; ++j) {
    scores[j] *= scale;
    highest = scores[j] > highest ? scores[j] : highest;
  }
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < count; ++j) {
    scores[j] = exponential(scores[j] - highest);
    sum += scores[j];
  }
  return count > 0 ? 1.0F / sum : 0.0F;
}

// ---- fp32 -------------------------------------------------------------------------------------

HWY_INLINE const float* key_of(const OneQuery& a, int64_t j) { return a.keys + j * a.stride; }
HWY_INLINE const float* value_of(const OneQuery& a, int64_t j) { return a.values + j * a.stride; }
HWY_INLINE const float* key_of(const ScatteredQuery& a, int64_t j) { return a.keys[j] + a.offset; }
HWY_INLINE const float* value_of(const ScatteredQuery& a, int64_t j) {
  return a.values[j] + a.offset;
}

// q · k_j for `Keys` keys.
template <int64_t Keys, class Query>
HWY_INLINE void scores_of(const Query& a, int64_t j, float* scores) {
  const Lane d;
  const float* k[Keys];
  Floats sums[Keys];
  for (int64_t n = 0; n < Keys; ++n) {
    k[n] = key_of(a, j + n);
    sums[n] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + kLanes <= a.width; c += kLanes) {
    const Floats q = hn::LoadU(d, a.q + c);
    for (int64_t n = 0; n < Keys; ++n) {
      sums[n] = hn::MulAdd(q, hn::LoadU(d, k[n] + c), sums[n]);
    }
  }
  for (int64_t n = 0; n < Keys; ++n) {
    float sum = hn::GetLane(hn::SumOfLanes(d, sums[n]));
    for (int64_t r = c; r < a.width; ++r) sum += a.q[r] * k[n][r];
    scores[j + n] = sum;
  }
}

// Σ_j p_j v_j for columns [c, c + Vectors · lanes).
template <int64_t Vectors, class Query>
HWY_INLINE void values_of(const Query& a, const float* p, int64_t c, float factor, float* out) {
  const Lane d;
  Floats sums[Vectors][2];
  for (auto& sum : sums) sum[0] = sum[1] = hn::Zero(d);
  int64_t j = 0;
  for (; j + 2 <= a.count; j += 2) {
    const Floats first = hn::Set(d, p[j]);
    const Floats second = hn::Set(d, p[j + 1]);
    const float* v = value_of(a, j) + c;
    const float* next = value_of(a, j + 1) + c;
    for (int64_t n = 0; n < Vectors; ++n) {
      sums[n][0] = hn::MulAdd(first, hn::LoadU(d, v + n * kLanes), sums[n][0]);
      sums[n][1] = hn::MulAdd(second, hn::LoadU(d, next + n * kLanes), sums[n][1]);
    }
  }
  for (int64_t n = 0; n < Vectors; ++n) {
    Floats sum = hn::Add(sums[n][0], sums[n][1]);
    if (j < a.count) {
      sum = hn::MulAdd(hn::Set(d, p[j]), hn::LoadU(d, value_of(a, j) + c + n * kLanes), sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(d, factor)), d, out + c + n * kLanes);
  }
}

template <class Query>
HWY_INLINE void all_scores(const Query& a, float* scores) {
  constexpr int64_t kKeys = 4;
  int64_t j = 0;
  for (; j + kKeys <= a.count; j += kKeys) scores_of<kKeys>(a, j, scores);
  for (; j < a.count; ++j) scores_of<1>(a, j, scores);
}

template <class Query>
HWY_INLINE void attend_query(const Query& a, float* scores, float* out) {
  all_scores(a, scores);
  const float factor = exponentials(a.bias, a.scale, a.count, scores);
  constexpr int64_t kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * kLanes <= a.width; c += kVectors * kLanes) {
    values_of<kVectors>(a, scores, c, factor, out);
  }
  for (; c + kLanes <= a.width; c += kLanes) values_of<1>(a, scores, c, factor, out);
  for (; c < a.width; ++c) {
    float value = 0.0F;
    for (int64_t j = 0; j < a.count; ++j) value += scores[j] * value_of(a, j)[c];
    out[c] = value * factor;
  }
}

void score_keys_of(const OneQuery& a, float* scores) { all_scores(a, scores); }
void attend_exact(const OneQuery& a, float* scores, float* out) { attend_query(a, scores, out); }
void attend_scattered(const ScatteredQuery& a, float* scores, float* out) {
  attend_query(a, scores, out);
}

// ---- bf16 -------------------------------------------------------------------------------------

// Σ p_j v_j over pairs of positions, for columns [c, c + Vectors · lanes) of `columns`.
template <int64_t Vectors>
HWY_INLINE void pair_values(const Bf16* values, int64_t columns, const float* p, int64_t pairs,
                            int64_t c, float factor, float* out) {
  const Lane d;
  Floats sums[Vectors][2];
  for (auto& sum : sums) sum[0] = sum[1] = hn::Zero(d);
  for (int64_t j = 0; j < pairs; ++j) {
    const Floats first = hn::Set(d, p[2 * j]);
    const Floats second = hn::Set(d, p[2 * j + 1]);
    for (int64_t n = 0; n < Vectors; ++n) {
      Floats v[2];
      read_pairs(values + 2 * (j * columns + c + n * kLanes), v);
      sums[n][0] = hn::MulAdd(first, v[0], sums[n][0]);
      sums[n][1] = hn::MulAdd(second, v[1], sums[n][1]);
    }
  }
  for (int64_t n = 0; n < Vectors; ++n) {
    const Floats sum = hn::Add(sums[n][0], sums[n][1]);
    hn::StoreU(hn::Mul(sum, hn::Set(d, factor)), d, out + n * kLanes);
  }
}

void attend_rounded(const RoundedQuery& a, float* scores, float* out) {
  const int64_t width = a.head.width;
  const int64_t columns = round_up(width, kPanel);
  const int64_t first_panel = a.first / kPanel;
  const int64_t panels = round_up(a.first + a.count, kPanel) / kPanel - first_panel;
  const int64_t even = round_up(width, 2);
  multiply<Bf16Reader>(a.head.keys + first_panel * kPanel * even, even, nullptr, a.q, 0, panels,
                       scores);
  const int64_t begin = a.first % kPanel;
  const float factor = exponentials(a.bias, a.scale, a.count, scores + begin);
  // Pairs are read whole; neighbors of the requested keys get weight 0.
  const int64_t end = begin + a.count;
  if (begin % 2 == 1) scores[begin - 1] = 0.0F;
  scores[end] = 0.0F;
  const int64_t pair = begin / 2;
  const int64_t pairs = a.count > 0 ? (end + 1) / 2 - pair : 0;
  const Bf16* values = a.head.values + (first_panel * kPanel + 2 * pair) * columns;
  const float* p = scores + 2 * pair;
  constexpr int64_t kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * kLanes <= width; c += kVectors * kLanes) {
    pair_values<kVectors>(values, columns, p, pairs, c, factor, out + c);
  }
  for (; c < width; c += kLanes) {
    HWY_ALIGN float last[kLanes];
    pair_values<1>(values, columns, p, pairs, c, factor, last);
    std::copy_n(last, std::min(kLanes, width - c), out + c);
  }
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(score_keys_of);
HWY_EXPORT(attend_exact);
HWY_EXPORT(attend_scattered);
HWY_EXPORT(attend_rounded);

void score_keys(const OneQuery& query, float* scores) {
  HWY_DYNAMIC_DISPATCH(score_keys_of)(query, scores);
}

void attend_one(const OneQuery& query, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(attend_exact)(query, scores, out);
}

void attend_one(const ScatteredQuery& query, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(attend_scattered)(query, scores, out);
}

void attend_one(const RoundedQuery& query, float* scores, float* out) {
  HWY_DYNAMIC_DISPATCH(attend_rounded)(query, scores, out);
}

// Columns are padded: values are read in whole vectors, keys in pairs of columns.
int64_t rounded_size(int64_t places, int64_t width) {
  return round_up(places, kPanel) * round_up(width, kPanel);
}

void put_rounded(const RoundedHead& head, int64_t place, const float* key, const float* value) {
  Bf16* keys = head.keys + place / kPanel * kPanel * round_up(head.width, 2) + 2 * (place % kPanel);
  Bf16* values = head.values + place / 2 * 2 * round_up(head.width, kPanel) + place % 2;
  for (int64_t c = 0; c < head.width; ++c) {
    narrow(key[c], keys[c / 2 * 2 * kPanel + c % 2]);
    narrow(value[c], values[2 * c]);
  }
}

void move_rounded(const RoundedHead& head, int64_t count) {
  const int64_t keys = count * round_up(head.width, 2);
  const int64_t values = count * round_up(head.width, kPanel);
  std::copy_n(head.keys + keys, keys, head.keys);
  std::copy_n(head.values + values, values, head.values);
}

}  // namespace rondo::kernels
#endif
