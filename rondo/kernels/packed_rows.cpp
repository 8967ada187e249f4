// Blocks of rows and panels whose sums stay in registers, compiled for each target.
#include "rondo/kernels/packed_rows.h"

#include <algorithm>
#include <vector>

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot be array elements.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/packed_rows.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "rondo/kernels/panels-inl.h"
#include "rondo/kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kLine = 64;  // bytes

struct Rows {
  const PackedMatrix* w;
  const float* x;
  int64_t x_stride;
  int64_t rows;
  const float* bias;
  float* y;
  int64_t y_stride;
};

// Rounds up to the next cache line.
float* aligned(float* at) {
  const auto place = reinterpret_cast<uintptr_t>(at);
  return at + (kLine - static_cast<int64_t>(place % kLine)) % kLine /
                  static_cast<int64_t>(sizeof(float));
}

// Stores the columns of a vector that is cut off by the end of the row. Not inlined: one copy for
// each vector of each block is more code than the instruction cache holds.
HWY_NOINLINE void put_last(const Rows& work, const float* sums, float* to, int64_t column) {
  for (int64_t i = 0; i < work.w->out - column; ++i) {
    to[i] = work.bias != nullptr ? sums[i] + work.bias[column + i] : sums[i];
  }
}

// Stores one vector of results at `column`.
HWY_INLINE void put(const Rows& work, Floats sum, int64_t row, int64_t column) {
  const Lane d;
  float* to = work.y + row * work.y_stride + column;
  if (work.w->scale != nullptr) sum = hn::Mul(sum, hn::LoadU(d, work.w->scale + column));
  if (column + kLanes <= work.w->out) {
    if (work.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, work.bias + column));
    return hn::StoreU(sum, d, to);
  }
  HWY_ALIGN float rest[kLanes];
  hn::Store(sum, d, rest);
  put_last(work, rest, to, column);
}

// Otherwise g++ rereads weights from memory for every row when there are few rows.
#if defined(__GNUC__) && !defined(__clang__) && \
    (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4)
HWY_INLINE void keep_in_register(Floats& weights) { asm("" : "+v"(weights.raw)); }
#else
HWY_INLINE void keep_in_register(Floats& /*weights*/) {}
#endif

// Memory needed soon, prefetched while other weights are processed.
struct Ahead {
  const char* next = nullptr;
  int64_t lines = 0;
};

// `Count` rows from `row` × `Panels` panels from `panel`, whose weights are `w` [Panels, columns,
// 16]. Not inlined: otherwise g++ runs out of registers.
template <int64_t Count, int64_t Panels>
HWY_NOINLINE void block(const Rows& work, const float* w, int64_t row, int64_t panel, Ahead ahead) {
  constexpr int64_t kVectors = Panels * kParts;
  const Lane d;
  const int64_t in = work.w->in;
  const int64_t step = work.w->columns() * kPanel;
  const float* x = work.x + row * work.x_stride;
  Floats sums[Count][kVectors];
  RONDO_UNROLL
  for (int64_t r = 0; r < Count; ++r) {
    RONDO_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < in; ++i) {
    if (i < ahead.lines) hwy::Prefetch(ahead.next + i * kLine);
    Floats weights[kVectors];
    RONDO_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      weights[v] = hn::Load(d, w + v / kParts * step + i * kPanel + v % kParts * kLanes);
      if (Count > 1) keep_in_register(weights[v]);
    }
    RONDO_UNROLL
    for (int64_t r = 0; r < Count; ++r) {
      const Floats input = hn::Set(d, x[r * work.x_stride + i]);
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

// Rows and panels whose sums fit in registers at once. With 32 registers, more than 6 rows take
// two panels: a pass over 12 rows reads weights once where 6 + 6 would read them twice, the second
// time from L2 (8 rows: 220 GFLOP/s instead of 160 on Zen 5; docs/performance.md).
constexpr bool kWideVectors = kParts == 1;
constexpr int64_t kFewRows = 6;
constexpr int64_t kManyRows = kWideVectors ? 12 : kFewRows;
constexpr int64_t kPanelsOfFew = kWideVectors ? kPanelsTogether : 1;
constexpr int64_t kPanelsOfMany = kWideVectors ? 2 : 1;

// `count` ≤ Count rows.
template <int64_t Count, int64_t Panels>
HWY_INLINE void block_of(const Rows& work, const float* w, int64_t row, int64_t count,
                         int64_t panel, Ahead ahead) {
  if constexpr (Count > 1) {
    if (count < Count) return block_of<Count - 1, Panels>(work, w, row, count, panel, ahead);
  }
  block<Count, Panels>(work, w, row, panel, ahead);
}

// Widens a few panels to fp32; scales are applied at the end of a sum.
template <class Reader>
void widen_panels(const PackedMatrix& m, int64_t panel, int64_t count, float* to) {
  const Lane d;
  const int64_t columns = m.columns();
  const auto* numbers = static_cast<const typename Reader::Number*>(m.data);
  for (int64_t p = panel; p < panel + count; ++p) {
    const auto* from = numbers + p * columns * Reader::kColumn;
    for (int64_t part = 0; part < kParts; ++part) {
      for (int64_t i = 0; i < columns; i += Reader::kStep) {
        Floats weights[Reader::kStep];
        Reader::read(from, i, part, weights);
        for (int64_t s = 0; s < Reader::kStep; ++s) {
          float* at = to + ((p - panel) * columns + i + s) * kPanel + part * kLanes;
          hn::Store(weights[s], d, at);
        }
      }
    }
  }
}

template <class Reader>
constexpr int64_t column_bytes() {
  return static_cast<int64_t>(sizeof(typename Reader::Number)) * Reader::kColumn;
}

// Bytes per column of a panel.
int64_t column_bytes(PackedFormat format) {
  if (format == PackedFormat::fp32) return column_bytes<Fp32Reader>();
  return format == PackedFormat::bf16 ? column_bytes<Bf16Reader>() : column_bytes<Int8Reader>();
}

void widen(const PackedMatrix& m, int64_t panel, int64_t count, float* to) {
  if (m.format == PackedFormat::bf16) return widen_panels<Bf16Reader>(m, panel, count, to);
  widen_panels<Int8Reader>(m, panel, count, to);
}

// All rows of a few panels, which stay in the L2 cache while the next panels are prefetched into
// it.
template <int64_t MostRows, int64_t Panels>
void rows_of(const Rows& work, int64_t panel, bool more, float* wide) {
  const PackedMatrix& m = *work.w;
  const int64_t columns = m.columns();
  const int64_t bytes = columns * column_bytes(m.format);  // per panel
  const char* data = static_cast<const char*>(m.data) + panel * bytes;
  const float* w = reinterpret_cast<const float*>(data);
  if (m.format != PackedFormat::fp32) {
    widen(m, panel, Panels, wide);
    w = wide;
  }
  // Blocks of nearly equal numbers of rows: a block of few rows waits for weights from L2, so 14
  // rows as 7 + 7 are faster than as 12 + 2.
  const int64_t blocks = (work.rows + MostRows - 1) / MostRows;
  const int64_t lines = more ? Panels * bytes / kLine : 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = work.rows * b / blocks;
    const int64_t last = work.rows * (b + 1) / blocks;
    const int64_t from = lines * first / work.rows;
    const Ahead ahead = {data + Panels * bytes + from * kLine, lines * last / work.rows - from};
    block_of<MostRows, Panels>(work, w, first, last - first, panel, ahead);
  }
}

template <int64_t MostRows, int64_t Together>
void all_panels(const Rows& work, int64_t first, int64_t last) {
  thread_local std::vector<float> room;  // reused by the next product
  float* wide = nullptr;
  if (work.w->format != PackedFormat::fp32) {
    const int64_t numbers = Together * work.w->columns() * kPanel;
    if (room.size() < static_cast<size_t>(numbers + kPanel)) {
      room.resize(static_cast<size_t>(numbers + kPanel));
    }
    wide = aligned(room.data());
  }
  int64_t p = first;
  for (; p + Together <= last; p += Together) {
    rows_of<MostRows, Together>(work, p, p + 2 * Together <= last, wide);
  }
  for (; p < last; ++p) rows_of<MostRows, 1>(work, p, p + 2 <= last, wide);
}

void packed_rows_of(const PackedMatrix& w, const InputRows& x, const float* bias, int64_t first,
                    int64_t last, const OutputRows& y) {
  const Rows work = {&w, x.data, x.stride, x.count, bias, y.data, y.stride};
  if (x.count <= kFewRows) return all_panels<kFewRows, kPanelsOfFew>(work, first, last);
  all_panels<kManyRows, kPanelsOfMany>(work, first, last);
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(packed_rows_of);

void packed_rows(const PackedMatrix& w, const InputRows& x, const float* bias, int64_t first,
                 int64_t last, const OutputRows& y) {
  HWY_DYNAMIC_DISPATCH(packed_rows_of)(w, x, bias, first, last, y);
}

}  // namespace rondo::kernels
#endif
