// Processing of a tile of scores between two products: factor, bias, mask, exponentials, dropout,
// and their gradients, for one target. Included once per target.
//
// Exponents use base 2: exp(x) = 2^(x · log2 e), where the multiplication is folded into the
// factor.
#if defined(RONDO_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef RONDO_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define RONDO_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include <cmath>
#include <limits>

#include "rondo/kernels/attention_pack-inl.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

constexpr float kLog2E = 1.44269504088896340736F;
constexpr float kLn2 = 0.69314718055994530942F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Below any score but finite, so differences stay defined for a row that has seen no key yet.
constexpr float kNothingSeen = -1e30F;

// 2^x for x ≤ 1 to about 2 ulp; 0 below 2^-126, avoiding slow denormals; NaN stays NaN. The integer
// part goes into the exponent; 2^fraction with 0 ≤ fraction < 1 is a polynomial (minimax, exact at
// 0).
HWY_INLINE FloatVector exp2_of(FloatVector x) {
  constexpr Floats d;
#if HWY_TARGET == HWY_AVX3
  constexpr int floor = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  const auto rest = FloatVector{_mm512_reduce_ps(x.raw, floor)};
#else
  const auto vanishes = hn::Lt(x, hn::Set(d, -126.0F));
  const auto in_range = hn::IfThenElse(vanishes, hn::Set(d, -126.0F), x);
  const auto whole = hn::Floor(in_range);
  const auto rest = hn::Sub(in_range, whole);
#endif
  auto y = hn::MulAdd(hn::Set(d, 1.867130072e-3F), rest, hn::Set(d, 9.017030316e-3F));
  y = hn::MulAdd(y, rest, hn::Set(d, 5.579991311e-2F));
  y = hn::MulAdd(y, rest, hn::Set(d, 2.401644502e-1F));
  y = hn::MulAdd(y, rest, hn::Set(d, 6.931513118e-1F));
  y = hn::MulAdd(y, rest, hn::Set(d, 1.0F));
#if HWY_TARGET == HWY_AVX3
  const __mmask16 counts = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-126.0F), _CMP_NLT_UQ);
  return FloatVector{_mm512_maskz_scalef_ps(counts, y.raw, x.raw)};
#else
  constexpr hn::RebindToSigned<Floats> integers;
  const auto exponent = hn::Add(hn::ConvertTo(integers, whole), hn::Set(integers, 127));
  y = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
  return hn::IfThenZeroElse(vanishes, y);
#endif
}

// Which probabilities of a row are dropped: the hash of rondo/kernels/dropout.cpp, where the
// positions of one stretch share a key. A row of a tile spans at most two stretches.
struct DropRow {
  uint32_t place = 0;  // of the row's first column, within its stretch
  uint32_t keys[2] = {0, 0};
  uint32_t threshold = 0;
  float scale = 1.0F;

  static uint32_t mix(uint64_t h) {
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return static_cast<uint32_t>(h ^ (h >> 33));
  }
  static constexpr int kStretchBits = 20;

  void move_to(uint64_t flat_place, uint64_t seed) {
    const uint64_t stretch = flat_place >> kStretchBits;
    place = static_cast<uint32_t>(flat_place & ((1U << kStretchBits) - 1));
    keys[0] = mix(seed + stretch * 0x9e3779b97f4a7c15ULL);
    keys[1] = mix(seed + (stretch + 1) * 0x9e3779b97f4a7c15ULL);
  }

  // 0 where dropped, otherwise 1 / (1 - rate), for the columns from `first`.
  HWY_INLINE FloatVector keep(int64_t first) const {
    constexpr Bits d;
    constexpr uint32_t stretch = 1U << kStretchBits;
    const auto at = hn::Iota(d, place + static_cast<uint32_t>(first));
    const auto next = hn::Gt(at, hn::Set(d, stretch - 1));
    const auto key = hn::IfThenElse(next, hn::Set(d, keys[1]), hn::Set(d, keys[0]));
    auto h = hn::Xor(hn::Mul(hn::And(at, hn::Set(d, stretch - 1)), hn::Set(d, 0x9e3779b9U)), key);
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<16>(h)), hn::Set(d, 0x85ebca6bU));
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(d, 0xc2b2ae35U));
    h = hn::Xor(h, hn::ShiftRight<16>(h));
    const auto dropped = hn::RebindMask(Floats(), hn::Gt(hn::Set(d, threshold), h));
    return hn::IfThenZeroElse(dropped, hn::Set(Floats(), scale));
  }
};

// One tile of scores of one head, and how the problem applies to it.
struct Tile {
  const AttentionProblem* problem = nullptr;
  int64_t b = 0;
  int64_t h = 0;
  int64_t first_query = 0;
  int64_t queries = 0;
  int64_t first_key = 0;
  int64_t keys = 0;
  int64_t columns = 0;  // keys rounded up to a whole step of the products
  bool mixed = false;   // some pairs are hidden

  uint64_t place(int64_t row) const {
    const int64_t query = (b * problem->heads + h) * problem->queries + first_query + row;
    return static_cast<uint64_t>(query * problem->keys + first_key);
  }
  const float* bias_row(int64_t row) const {
    const int64_t query = h * problem->queries + first_query + row;
    return problem->bias + query * problem->keys + first_key;
  }
  const uint8_t* mask_row(int64_t row) const {
    return problem->mask + b * problem->mask_batch + (first_query + row) * problem->mask_row +
           first_key;
  }
  DropRow dropping() const {
    DropRow drop;
    drop.threshold = static_cast<uint32_t>(std::llround(problem->dropout * 4294967295.0));
    drop.scale = static_cast<float>(1.0 / (1.0 - problem->dropout));
    return drop;
  }
};

// Loads the first `left` values; the rest are zeros.
template <class T, class D>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, int64_t left) {
  if (left >= kLanes) return hn::LoadU(d, from);
  HWY_ALIGN T some[HWY_LANES(float)] = {};
  if (left > 0) std::memcpy(some, from, static_cast<size_t>(left) * sizeof(T));
  return hn::Load(d, some);
}

template <bool kBias, bool kVisible>
HWY_INLINE void settle_row(const Tile& tile, int64_t row, float factor, float* scores) {
  constexpr Floats d;
  constexpr hn::Rebind<uint8_t, Floats> bytes;
  const auto hidden = hn::Set(d, -kInfinity);
  for (int64_t j = 0; j < tile.columns; j += kLanes) {
    const int64_t left = tile.keys - j;
    auto s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, factor));
    if (kBias) s = hn::MulAdd(load_some(d, tile.bias_row(row) + j, left), hn::Set(d, kLog2E), s);
    if (kVisible) {
      const auto seen = hn::PromoteTo(Bits(), load_some(bytes, tile.mask_row(row) + j, left));
      s = hn::IfThenElse(hn::RebindMask(d, hn::Eq(seen, hn::Zero(Bits()))), hidden, s);
    }
    if (left < kLanes) {
      const auto real = hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, left)));
      s = hn::IfThenElse(real, s, hidden);
    }
    hn::Store(s, d, scores + j);
  }
}

// Applies bias and mask to the products [queries, kTile]. Returns the factor still to be applied,
// base 2, or 1 if it already was.
HWY_INLINE float settle_scores(const Tile& tile, float* scores) {
  const float factor = tile.problem->factor[tile.h] * kLog2E;
  const bool bias = tile.problem->bias != nullptr;
  if (!bias && !tile.mixed && tile.keys == tile.columns) return factor;
  for (int64_t i = 0; i < tile.queries; ++i) {
    float* row = scores + i * kTile;
    if (bias && tile.mixed) {
      settle_row<true, true>(tile, i, factor, row);
    } else if (bias) {
      settle_row<true, false>(tile, i, factor, row);
    } else if (tile.mixed) {
      settle_row<false, true>(tile, i, factor, row);
    } else {
      settle_row<false, false>(tile, i, factor, row);
    }
  }
  return 1.0F;
}

// scores → weights 2^(score - largest), with dropout, as the left operand of a product; in fp32
// they overwrite the scores. Returns the factor by which the query's earlier sums must be
// multiplied, since `largest` may have grown.
template <class Math>
HWY_INLINE float softmax_row(const float* scores, int64_t columns, float factor,
                             const DropRow* drop, float& largest, float& sum, float* weights) {
  constexpr Floats d;
  const auto scale = hn::Set(d, factor);
  auto most = hn::Set(d, largest);
  for (int64_t j = 0; j < columns; j += kLanes) {
    most = hn::Max(most, hn::Mul(hn::Load(d, scores + j), scale));
  }
  const float now = hn::GetLane(hn::MaxOfLanes(d, most));
  const auto shift = hn::Set(d, now);
  auto total = hn::Zero(d);
  for (int64_t j = 0; j < columns; j += Math::kColumnStep) {
    FloatVector p[Math::kColumnStep / kLanes];
    RONDO_UNROLL
    for (int64_t v = 0; v < Math::kColumnStep / kLanes; ++v) {
      const int64_t at = j + v * kLanes;
      p[v] = exp2_of(hn::MulSub(hn::Load(d, scores + at), scale, shift));
      total = hn::Add(total, p[v]);
      if (drop != nullptr) p[v] = hn::Mul(p[v], drop->keep(at));
    }
    store_left(Math(), p, weights + j / Math::kPerUnit);
  }
  const float before = largest == now ? 1.0F : std::exp2(largest - now);
  largest = now;
  sum = sum * before + hn::GetLane(hn::SumOfLanes(d, total));
  return before;
}

// Per-row values for the gradient: log2 Σ 2^score, and Σ p · gradient.
struct RowTotals {
  float lse = 0.0F;
  float mean = 0.0F;
};

// Scores and probability gradients → dropped-out probabilities and score gradients.
HWY_INLINE void softmax_gradient(FloatVector& score, FloatVector& gradient, float factor,
                                 const DropRow* drop, int64_t column, const RowTotals& row) {
  constexpr Floats d;
  const auto p = exp2_of(hn::MulSub(score, hn::Set(d, factor), hn::Set(d, row.lse)));
  score = p;
  if (drop != nullptr) {
    const auto keep = drop->keep(column);
    gradient = hn::Mul(gradient, keep);
    score = hn::Mul(p, keep);
  }
  gradient = hn::Mul(p, hn::Sub(gradient, hn::Set(d, row.mean)));
}

// sums[0 … left) += row; these are bias sums, which end where the keys do.
HWY_INLINE void add_some(FloatVector row, float* sums, int64_t left) {
  constexpr Floats d;
  if (left >= kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums), row), d, sums);
    return;
  }
  HWY_ALIGN float some[HWY_LANES(float)];
  hn::Store(row, d, some);
  for (int64_t j = 0; j < left; ++j) sums[j] += some[j];
}

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_ATTENTION_SOFTMAX_INL_H_
