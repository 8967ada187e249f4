// Matrix multiplication with sums held in registers, for one target: used by attention and by the
// blocked gemm. Included once per target (Highway's foreach_target).
#if defined(RONDO_KERNELS_REGISTER_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_REGISTER_PRODUCT_INL_H_
#undef RONDO_KERNELS_REGISTER_PRODUCT_INL_H_
#else
#define RONDO_KERNELS_REGISTER_PRODUCT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "rondo/kernels/amx.h"
#include "rondo/kernels/unroll.h"

// Highway 1.0.3 supports AVX-512 but not its BF16 extension. Compilers emit BF16 instructions only
// for explicit intrinsics, so all AVX-512 code may be compiled with it, and code that uses them
// (Bf16Math, AmxMath) runs only where the CPU has it.
#undef RONDO_BEFORE_KERNELS
#undef RONDO_HAVE_BF16
#if HWY_TARGET == HWY_AVX3
#define RONDO_HAVE_BF16 1
#define RONDO_BEFORE_KERNELS()                      \
  HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16") \
  static_assert(true, "For requiring a trailing semicolon")
#else
#define RONDO_HAVE_BF16 0
#define RONDO_BEFORE_KERNELS() HWY_BEFORE_NAMESPACE()
#endif

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
constexpr int64_t kLanes = HWY_LANES(float);

constexpr int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Products are sums over 32-bit units: one fp32 value, or a pair of bf16 values adjacent along the
// sum. Both are laid out, loaded and broadcast the same way.
struct Fp32Math {
  static constexpr int64_t kPerUnit = 1;
  static constexpr int64_t kUnitStep = 1;         // sums run over multiples of this many units
  static constexpr int64_t kRowStep = 1;          // rows are padded to multiples of this
  static constexpr int64_t kColumnStep = kLanes;  // keys of a score tile likewise
  static HWY_INLINE FloatVector add_product(FloatVector sum, FloatVector a, FloatVector b) {
    return hn::MulAdd(a, b, sum);
  }
};

#if RONDO_HAVE_BF16
struct Bf16Math {
  static constexpr int64_t kPerUnit = 2;
  static constexpr int64_t kUnitStep = 1;
  static constexpr int64_t kRowStep = 1;
  static constexpr int64_t kColumnStep = 2 * kLanes;
  static HWY_INLINE FloatVector add_product(FloatVector sum, FloatVector a, FloatVector b) {
    return FloatVector{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
  }
};

// AMX tile registers (amx.h): 16 rows of 16 units each.
struct AmxMath {
  static constexpr int64_t kPerUnit = 2;
  static constexpr int64_t kUnitStep = 16;
  static constexpr int64_t kRowStep = 16;
  static constexpr int64_t kColumnStep = 2 * kLanes;
};
#endif

// The number of units that hold `numbers` values, rounded up to a whole step.
template <class Math>
constexpr int64_t units(int64_t numbers) {
  return round_up((numbers + Math::kPerUnit - 1) / Math::kPerUnit, Math::kUnitStep);
}

// The left operand: unit (m, k) is at data[m · step + k] or, transposed, at data[k · step + m].
struct Left {
  const float* data = nullptr;
  int64_t step = 0;
};

// The right operand [K, N units] and the result [M, N]: N whole vectors, rows `step` floats apart.
struct Right {
  const float* data = nullptr;
  int64_t step = 0;
};
struct Product {
  float* data = nullptr;
  int64_t step = 0;
  bool add = false;  // accumulate into the existing values
};

// Setup before the first product of a work item, undone after the last.
template <class Math>
struct Ready {};

#if RONDO_HAVE_BF16
template <>
struct Ready<AmxMath> : OpenTiles {};
#endif

// kRows × kVectors vectors of sums stay in registers.
template <class Math, int kRows, int kVectors, bool kTurned>
HWY_NOINLINE void product_block(const Left& left, const Right& right, int64_t count,
                                const Product& to) {
  constexpr Floats d;
  FloatVector sums[kRows][kVectors];
  RONDO_UNROLL
  for (int m = 0; m < kRows; ++m) {
    RONDO_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[m][v] = hn::Zero(d);
  }
  const Product result = to;  // a local copy, so stores cannot alias it
  RONDO_UNROLL
  for (int m = 0; m < kRows; ++m) hwy::Prefetch(result.data + m * result.step);
  const float* a = left.data;
  const float* b = right.data;
  const int64_t step = left.step;
  for (int64_t k = 0; k < count; ++k) {
    FloatVector columns[kVectors];
    RONDO_UNROLL
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::Load(d, b + v * kLanes);
    RONDO_UNROLL
    for (int m = 0; m < kRows; ++m) {
      const FloatVector x = hn::Set(d, kTurned ? a[m] : a[m * step]);
      RONDO_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sums[m][v] = Math::add_product(sums[m][v], x, columns[v]);
      }
    }
    a += kTurned ? step : 1;
    b += right.step;
  }
  RONDO_UNROLL
  for (int m = 0; m < kRows; ++m) {
    RONDO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* c = result.data + m * result.step + v * kLanes;
      hn::StoreU(result.add ? hn::Add(hn::LoadU(d, c), sums[m][v]) : sums[m][v], d, c);
    }
  }
}

// As many rows as registers allow: 32 registers with AVX-512, otherwise 16.
#if HWY_TARGET == HWY_AVX3
constexpr int kMostVectors = 4;
constexpr int most_rows(int vectors) { return vectors == 4 ? 6 : vectors == 3 ? 8 : 12; }
#else
constexpr int kMostVectors = 2;
constexpr int most_rows(int vectors) { return vectors == 2 ? 6 : 12; }
#endif

template <class Math, int kRows, int kVectors, bool kTurned>
HWY_INLINE void product_rows(Left& left, const Right& right, int64_t count, Product& to,
                             int64_t& rows) {
  for (; rows >= kRows; rows -= kRows) {
    product_block<Math, kRows, kVectors, kTurned>(left, right, count, to);
    left.data += kRows * (kTurned ? 1 : left.step);
    to.data += kRows * to.step;
  }
}

template <class Math, int kVectors, bool kTurned>
void product_columns(Left left, const Right& right, int64_t rows, int64_t count, Product to) {
  product_rows<Math, most_rows(kVectors), kVectors, kTurned>(left, right, count, to, rows);
  product_rows<Math, 4, kVectors, kTurned>(left, right, count, to, rows);
  product_rows<Math, 2, kVectors, kTurned>(left, right, count, to, rows);
  product_rows<Math, 1, kVectors, kTurned>(left, right, count, to, rows);
}

template <class Math, bool kTurned>
HWY_INLINE void vector_product(const Left& left, Right right, int64_t rows, int64_t columns,
                               int64_t count, Product to) {
  for (int64_t vectors = columns / kLanes; vectors > 0;) {
    int64_t now = vectors < kMostVectors ? vectors : kMostVectors;
    switch (now) {
#if HWY_TARGET == HWY_AVX3
      case 4:
        product_columns<Math, 4, kTurned>(left, right, rows, count, to);
        break;
      case 3:
        product_columns<Math, 3, kTurned>(left, right, rows, count, to);
        break;
#endif
      case 2:
        product_columns<Math, 2, kTurned>(left, right, rows, count, to);
        break;
      default:
        product_columns<Math, 1, kTurned>(left, right, rows, count, to);
    }
    vectors -= now;
    right.data += now * kLanes;
    to.data += now * kLanes;
  }
}

// to [rows, columns] = left [rows, count units] · right [count units, columns]; columns are whole
// vectors.
template <class Math, bool kTurned>
HWY_NOINLINE void product(const Left& left, const Right& right, int64_t rows, int64_t columns,
                          int64_t count, const Product& to) {
#if RONDO_HAVE_BF16
  if constexpr (std::is_same_v<Math, AmxMath>) {
    static_assert(!kTurned, "tile registers are loaded by rows");
    multiply_pairs({left.data, left.step}, {right.data, right.step}, rows, columns, count, to.add,
                   to.data, to.step);
  } else {
    vector_product<Math, kTurned>(left, right, rows, columns, count, to);
  }
#else
  vector_product<Math, kTurned>(left, right, rows, columns, count, to);
#endif
}

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_REGISTER_PRODUCT_INL_H_
