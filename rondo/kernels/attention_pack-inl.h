// Packs rows of queries, keys and values into the layouts that products need, and unpacks sums into
// rows, for one target. Included once per target.
#if defined(RONDO_KERNELS_ATTENTION_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_ATTENTION_PACK_INL_H_
#undef RONDO_KERNELS_ATTENTION_PACK_INL_H_
#else
#define RONDO_KERNELS_ATTENTION_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "rondo/kernels/attention_plan.h"
#include "rondo/kernels/register_product-inl.h"
#include "rondo/kernels/vector_math.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

using Bits = hn::RebindToUnsigned<Floats>;
using HalfBits = hn::Rebind<uint16_t, Floats>;

HWY_INLINE FloatVector load_wide(const float* x) { return hn::LoadU(Floats(), x); }
HWY_INLINE FloatVector load_wide(const Bf16* x) {
  const auto half = hn::LoadU(HalfBits(), &x->bits);
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), half)));
}

HWY_INLINE void store_narrow(FloatVector x, float* to) { hn::StoreU(x, Floats(), to); }
HWY_INLINE void store_narrow(FloatVector x, Bf16* to) {
  constexpr Bits d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
  const auto nan = hn::RebindMask(d, hn::IsNaN(x));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(nan, hn::Set(d, 0x7fc00000), rounded));
  hn::StoreU(hn::DemoteTo(HalfBits(), hn::BitCast(hn::RebindToSigned<Floats>(), upper)), HalfBits(),
             &to->bits);
}

// One row of d values as fp32, zero-padded to `size`.
template <class T>
HWY_INLINE void widen_row(const T* from, int64_t width, int64_t size, float* to) {
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) hn::StoreU(load_wide(from + c), Floats(), to + c);
  for (; c < width; ++c) to[c] = widen(from[c]);
  for (; c < size; ++c) to[c] = 0.0F;
}

// One row of sums times `scale`, in the data's type.
template <class T>
HWY_INLINE void write_row(const float* from, float scale, int64_t width, T* to) {
  const auto factor = hn::Set(Floats(), scale);
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    store_narrow(hn::Mul(hn::Load(Floats(), from + c), factor), to + c);
  }
  for (; c < width; ++c) narrow(from[c] * scale, to[c]);
}

// Σ a·b over a row.
template <class A, class B>
HWY_INLINE float dot_row(const A* a, const B* b, int64_t width) {
  auto sum = hn::Zero(Floats());
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    sum = hn::MulAdd(load_wide(a + c), load_wide(b + c), sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(Floats(), sum));
  for (; c < width; ++c) total += widen(a[c]) * widen(b[c]);
  return total;
}

// Floats between rows of a left operand of a product over d; the padding holds zeros.
template <class Math>
constexpr int64_t left_step(int64_t width) {
  return padded(units<Math>(width));
}

// `count` rows as the left operand of a product over d: [count, left_step].
template <class Math, class T>
void pack_left(const T* from, int64_t step, int64_t count, int64_t width, float* to) {
  const int64_t size = left_step<Math>(width);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (Math::kPerUnit == 1) {
      widen_row(from + i * step, width, size, to + i * size);
    } else {  // pairs are already adjacent
      static_assert(sizeof(T) == sizeof(Bf16));
      auto* row = reinterpret_cast<char*>(to + i * size);
      const size_t bytes = static_cast<size_t>(width) * sizeof(T);
      std::memcpy(row, from + i * step, bytes);
      std::memset(row + bytes, 0, static_cast<size_t>(size) * sizeof(float) - bytes);
    }
  }
}

// Transposes a block of 4 × 4 units.
HWY_INLINE void turn_4x4(const float* from, int64_t step, float* to, int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t c = 0; c < 4; ++c) to[c * to_step + i] = from[i * step + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + step);
  const auto c = hn::LoadU(d, from + 2 * step);
  const auto e = hn::LoadU(d, from + 3 * step);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));  // a0 b0 a1 b1
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + to_step);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_step);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_step);
#endif
}

// Transposes from [rows, columns] to [columns, rows], zero-padded to `size`.
HWY_INLINE void turn(const Left& from, int64_t rows, int64_t columns, float* to, int64_t to_step,
                     int64_t size) {
  for (int64_t i = 0; i < rows; i += 4) {
    int64_t c = 0;
    if (i + 4 <= rows) {
      for (; c + 4 <= columns; c += 4) {
        turn_4x4(from.data + i * from.step + c, from.step, to + c * to_step + i, to_step);
      }
    }
    for (; c < columns; ++c) {
      for (int64_t k = i; k < std::min(i + 4, rows); ++k) {
        to[c * to_step + k] = from.data[k * from.step + c];
      }
    }
  }
  for (int64_t c = 0; c < columns && rows < size; ++c) {
    std::fill(to + c * to_step + rows, to + c * to_step + size, 0.0F);
  }
}

#if RONDO_HAVE_BF16
HWY_INLINE __m512i pair_of(__m256i low, __m256i high) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

// Two rows of bf16 as one row of pairs; a missing second row is treated as zeros.
HWY_INLINE void pair_row(const Bf16* first, const Bf16* second, int64_t width, int64_t size,
                         float* to) {
  for (int64_t c = 0; c < size; c += kLanes) {
    const int64_t left = std::max<int64_t>(0, width - c);
    const auto mask = static_cast<__mmask16>(left >= kLanes ? 0xffff : (1 << left) - 1);
    const __m256i low = _mm256_maskz_loadu_epi16(mask, first + c);
    const __m256i high =
        second != nullptr ? _mm256_maskz_loadu_epi16(mask, second + c) : _mm256_setzero_si256();
    _mm512_store_si512(to + c, pair_of(low, high));
  }
}
#endif

// Rows as the right operand of a product over rows: [units of count, padded d].
template <class Math, class T>
void pack_right(const T* from, int64_t step, int64_t count, int64_t width, float* to) {
  const int64_t size = padded(width);
  if constexpr (Math::kPerUnit == 1) {
    for (int64_t i = 0; i < count; ++i) widen_row(from + i * step, width, size, to + i * size);
  } else {
    for (int64_t i = 0; i < count; i += 2) {
      pair_row(from + i * step, i + 1 < count ? from + (i + 1) * step : nullptr, width, size,
               to + i / 2 * size);
    }
    const int64_t pairs = (count + 1) / 2;
    std::fill(to + pairs * size, to + units<Math>(count) * size, 0.0F);
  }
}

// Scores of one query as the left operand of a product over keys.
HWY_INLINE void store_left(Fp32Math /*math*/, const FloatVector (&x)[1], float* to) {
  hn::Store(x[0], Floats(), to);
}

#if RONDO_HAVE_BF16
template <class Math>
HWY_INLINE void store_left(Math /*math*/, const FloatVector (&x)[2], float* to) {
  _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(x[1].raw, x[0].raw));
}

// Scores of two queries as the right operand of a product over queries.
HWY_INLINE void store_right(FloatVector first, FloatVector second, float* to) {
  _mm512_store_si512(
      to, pair_of((__m256i)_mm512_cvtneps_pbh(first.raw), (__m256i)_mm512_cvtneps_pbh(second.raw)));
}
#endif

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_ATTENTION_PACK_INL_H_
