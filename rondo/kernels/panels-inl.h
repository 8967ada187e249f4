// Multiplies panels (packed.h) by a vector, and reads each weight format, for one target. Included
// once per target (Highway's foreach_target).
#if defined(RONDO_KERNELS_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_PANELS_INL_H_
#undef RONDO_KERNELS_PANELS_INL_H_
#else
#define RONDO_KERNELS_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include "rondo/kernels/packed.h"
#include "rondo/kernels/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {  // the attention kernels' names are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;

using Lane = hn::CappedTag<float, kPanel>;
using Floats = hn::Vec<Lane>;
constexpr int64_t kLanes = hn::MaxLanes(Lane());
constexpr int64_t kParts = kPanel / kLanes;               // vectors in a panel
constexpr int64_t kGroup = kLanes >= 8 ? kLanes / 2 : 2;  // panels at once: 8 sums in flight

// Readers return the weights of panel rows [part · lanes, ...) for kStep columns starting at
// `column`. A column of a panel takes kColumn values.
struct Fp32Reader {
  using Number = float;
  static constexpr int64_t kStep = 2;
  static constexpr int64_t kColumn = kPanel;
  static HWY_INLINE void read(const float* panel, int64_t column, int64_t part, Floats* w) {
    const Lane d;
    const float* at = panel + column * kPanel + part * kLanes;
    w[0] = hn::Load(d, at);
    w[1] = hn::Load(d, at + kPanel);
  }
};

// Two adjacent bf16 values sharing 32 bits, the first in the lower half.
HWY_INLINE void read_pairs(const Bf16* at, Floats* w) {
  const Lane d;
  const hn::RebindToUnsigned<Lane> bits;
  const auto both = hn::Load(bits, reinterpret_cast<const uint32_t*>(at));
  w[0] = hn::BitCast(d, hn::ShiftLeft<16>(both));
  w[1] = hn::BitCast(d, hn::And(both, hn::Set(bits, 0xffff0000U)));
}

struct Bf16Reader {
  using Number = Bf16;
  static constexpr int64_t kStep = 2;
  static constexpr int64_t kColumn = kPanel;
  static HWY_INLINE void read(const Bf16* panel, int64_t column, int64_t part, Floats* w) {
    read_pairs(panel + column * kPanel + 2 * part * kLanes, w);
  }
};

struct Int8Reader {
  using Number = int8_t;
  static constexpr int64_t kStep = 2;
  static constexpr int64_t kColumn = kPanel;
  static HWY_INLINE void read(const int8_t* panel, int64_t column, int64_t part, Floats* w) {
    const Lane d;
    const hn::RebindToSigned<Lane> integers;
    const hn::Rebind<int8_t, Lane> bytes;
    const int8_t* at = panel + column * kPanel + part * kLanes;
    w[0] = hn::ConvertTo(d, hn::PromoteTo(integers, hn::Load(bytes, at)));
    w[1] = hn::ConvertTo(d, hn::PromoteTo(integers, hn::Load(bytes, at + kPanel)));
  }
};

// `Panels` consecutive panels. Each sum runs over columns in order, as in packed_rows.cpp, so that
// a row has the same bits alone and in a batch. A sum depends on its previous addition; several
// panels keep the adders busy.
template <class Reader, int64_t Panels>
HWY_INLINE void multiply_panels(const typename Reader::Number* w, int64_t columns, const float* x,
                                const float* scale, float* y) {
  const Lane d;
  Floats sums[Panels * kParts];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < columns; i += Reader::kStep) {
    Floats inputs[Reader::kStep];
    for (int64_t s = 0; s < Reader::kStep; ++s) inputs[s] = hn::Set(d, x[i + s]);
    for (int64_t p = 0; p < Panels * kParts; ++p) {
      Floats weights[Reader::kStep];
      Reader::read(w + p / kParts * columns * Reader::kColumn, i, p % kParts, weights);
      for (int64_t s = 0; s < Reader::kStep; ++s) {
        sums[p] = hn::MulAdd(weights[s], inputs[s], sums[p]);
      }
    }
  }
  for (int64_t p = 0; p < Panels * kParts; ++p) {
    Floats sum = sums[p];
    if (scale != nullptr) sum = hn::Mul(sum, hn::LoadU(d, scale + p * kLanes));
    hn::StoreU(sum, d, y + p * kLanes);
  }
}

// Panels [first, last).
template <class Reader>
HWY_INLINE void multiply(const typename Reader::Number* w, int64_t columns, const float* scales,
                         const float* x, int64_t first, int64_t last, float* y) {
  const int64_t panel = columns * Reader::kColumn;
  const auto scale = [&](int64_t p) { return scales != nullptr ? scales + p * kPanel : nullptr; };
  int64_t p = first;
  for (; p + kGroup <= last; p += kGroup) {
    multiply_panels<Reader, kGroup>(w + p * panel, columns, x, scale(p), y + p * kPanel);
  }
  for (; p < last; ++p) {
    multiply_panels<Reader, 1>(w + p * panel, columns, x, scale(p), y + p * kPanel);
  }
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_PANELS_INL_H_
