// Blocks of rows and panels whose sums stay in registers, compiled for each kind of CPU.
#include "rondo/kernels/packed_rows.h"

#include <algorithm>

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot stand in arrays.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/packed_rows.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "rondo/kernels/panels-inl.h"

#undef RONDO_UNROLL
#if defined(__clang__)
#define RONDO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RONDO_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {

// What is worked on.
struct Rows {
  const PackedMatrix* w;
  const float* x;
  const float* bias;
  float* y;
};

// One vector of results, from `column` on; the last may be cut off.
HWY_INLINE void put(const Rows& work, Floats sum, int64_t row, int64_t column) {
  const Lane d;
  const int64_t out = work.w->out;
  float* to = work.y + row * out + column;
  if (column + kLanes <= out) {
    if (work.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, work.bias + column));
    return hn::StoreU(sum, d, to);
  }
  HWY_ALIGN float rest[kLanes];
  hn::Store(sum, d, rest);
  for (int64_t i = 0; i < out - column; ++i) {
    to[i] = work.bias != nullptr ? rest[i] + work.bias[column + i] : rest[i];
  }
}

// Weights that will be wanted soon, to be fetched while others are worked with.
struct Ahead {
  const float* next = nullptr;
  int64_t lines = 0;  // of kPanel numbers
};

// `Count` rows from `row` × `Panels` panels from `panel`.
template <int64_t Count, int64_t Panels>
HWY_INLINE void block(const Rows& work, int64_t row, int64_t panel, Ahead ahead) {
  constexpr int64_t kVectors = Panels * kParts;
  const Lane d;
  const int64_t in = work.w->in;
  const int64_t step = work.w->columns() * kPanel;
  const float* w = static_cast<const float*>(work.w->data) + panel * step;
  const float* x = work.x + row * in;
  Floats sums[Count][kVectors];
  RONDO_UNROLL
  for (int64_t r = 0; r < Count; ++r) {
    RONDO_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < in; ++i) {
    if (i < ahead.lines) hwy::Prefetch(ahead.next + i * kPanel);
    Floats weights[kVectors];
    RONDO_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      weights[v] = hn::Load(d, w + v / kParts * step + i * kPanel + v % kParts * kLanes);
    }
    RONDO_UNROLL
    for (int64_t r = 0; r < Count; ++r) {
      const Floats input = hn::Set(d, x[r * in + i]);
      RONDO_UNROLL
      for (int64_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(weights[v], input, sums[r][v]);
      }
    }
  }
  RONDO_UNROLL
  for (int64_t r = 0; r < Count; ++r) {
    RONDO_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t column = panel * kPanel + v * kLanes;
      if (column < work.w->out) put(work, sums[r][v], row + r, column);
    }
  }
}

// All rows of a few panels, which stay in the second cache; the next panels come there meanwhile.
template <int64_t Panels>
void rows_of(const Rows& work, int64_t rows, int64_t panel, bool more) {
  const int64_t step = work.w->columns() * kPanel;
  const float* next = static_cast<const float*>(work.w->data) + (panel + Panels) * step;
  const int64_t lines = more ? Panels * work.w->columns() : 0;
  const auto ahead = [&](int64_t first, int64_t last) {
    const int64_t from = lines * first / rows;
    return Ahead{next + from * kPanel, lines * last / rows - from};
  };
  int64_t r = 0;
  for (; r + 6 <= rows; r += 6) block<6, Panels>(work, r, panel, ahead(r, r + 6));
  for (; r + 3 <= rows; r += 3) block<3, Panels>(work, r, panel, ahead(r, r + 3));
  for (; r < rows; ++r) block<1, Panels>(work, r, panel, ahead(r, r + 1));
}

void packed_rows_of(const PackedMatrix& w, const float* x, int64_t rows, const float* bias,
                    int64_t first, int64_t last, float* y) {
  const Rows work = {&w, x, bias, y};
  constexpr int64_t kTogether = kParts == 1 ? kPanelsTogether : 1;  // as registers allow
  int64_t p = first;
  for (; p + kTogether <= last; p += kTogether) {
    rows_of<kTogether>(work, rows, p, p + 2 * kTogether <= last);
  }
  for (; p < last; ++p) rows_of<1>(work, rows, p, p + 2 <= last);
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(packed_rows_of);

void packed_rows(const PackedMatrix& w, const float* x, int64_t rows, const float* bias,
                 int64_t first, int64_t last, float* y) {
  HWY_DYNAMIC_DISPATCH(packed_rows_of)(w, x, rows, bias, first, last, y);
}

}  // namespace rondo::kernels
#endif
