// 8-bit products by AVX-512's instruction for sums of four unsigned × signed bytes (VNNI), and by
// tile registers (AMX). Neither saturates; AVX2's older instruction does: see
// int8_words.cpp.
#include "rondo/kernels/int8_parts.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "rondo/kernels/cpu_bf16.h"
#include "rondo/kernels/unroll.h"

#define RONDO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define RONDO_TILES \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,amx-tile,amx-int8")))

namespace rondo::kernels {
namespace {

// Which of the 16 columns from `column` there are.
RONDO_VNNI __mmask16 columns_from(const Int8Work& work, int64_t column) {
  const int64_t left = work.last - column;
  return left >= kInt8Block ? 0xffffU : static_cast<__mmask16>((1U << left) - 1U);
}

// y = (sum - shift) · scale of the column · scale of the row + bias, for 16 columns of row r.
RONDO_VNNI inline void finish_row(const Int8Work& work, __m512i sum, int64_t r, int64_t column) {
  const __mmask16 real = columns_from(work, column);
  const Int8Matrix& w = *work.w;
  sum = _mm512_sub_epi32(sum, _mm512_loadu_si512(w.shift.data() + column));
  __m512 y = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffffU, sum),
                           _mm512_loadu_ps(w.scale.data() + column));
  y = _mm512_mul_ps(y, _mm512_set1_ps(work.x->scale[static_cast<size_t>(r)]));
  if (work.bias != nullptr) {
    y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(real, work.bias + column));
  }
  _mm512_mask_storeu_ps(work.y + r * work.stride + column, real, y);
}

// kRows rows from r × kBlocks blocks of 16 columns stay in registers.
template <int kRows, int kBlocks>
RONDO_VNNI void vector_block(const Int8Work& work, int64_t r, int64_t column) {
  const int64_t step = work.x->step;
  const uint8_t* x = work.x->q.data() + r * step;
  const int8_t* w = work.w->q.data() + column * step;
  __m512i sums[kRows][kBlocks];
  RONDO_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RONDO_UNROLL
    for (int b = 0; b < kBlocks; ++b) sums[i][b] = _mm512_setzero_si512();
  }
  for (int64_t k = 0; k < step; k += kInt8Unit) {
    __m512i weights[kBlocks];
    RONDO_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      weights[b] = _mm512_loadu_si512(w + (b * step + k) * kInt8Block);
    }
    RONDO_UNROLL
    for (int i = 0; i < kRows; ++i) {
      int32_t four = 0;
      std::memcpy(&four, x + i * step + k, sizeof four);
      const __m512i bytes = _mm512_set1_epi32(four);
      RONDO_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        sums[i][b] = _mm512_dpbusd_epi32(sums[i][b], bytes, weights[b]);
      }
    }
  }
  RONDO_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RONDO_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      const int64_t at = column + b * kInt8Block;
      if (at < work.last) finish_row(work, sums[i][b], r + i, at);
    }
  }
}

constexpr int kTogether = static_cast<int>(kInt8Columns / kInt8Block);

// As the CPU reads it.
struct TileShapes {
  uint8_t palette = 1;
  uint8_t start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// 32 (or 16) rows from r × 32 columns, in tile registers 0 to 3, then in `sums`.
template <bool kTwoRows>
RONDO_TILES inline void tile_block(const Int8Work& work, int64_t r, int64_t column, int32_t* sums) {
  constexpr int64_t sums_step = 2 * kInt8Block * sizeof(int32_t);
  const int64_t step = work.x->step;
  const uint8_t* x = work.x->q.data() + r * step;
  const int8_t* w = work.w->q.data() + column * step;
  _tile_zero(0);
  _tile_zero(1);
  if (kTwoRows) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < step; k += 64) {
    _tile_loadd(6, w + k * kInt8Block, 64);
    _tile_loadd(7, w + (step + k) * kInt8Block, 64);
    _tile_loadd(4, x + k, step);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if (kTwoRows) {
      _tile_loadd(5, x + 16 * step + k, step);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
  _tile_stored(0, sums, sums_step);
  _tile_stored(1, sums + 16, sums_step);
  if (kTwoRows) {
    _tile_stored(2, sums + 16 * 32, sums_step);
    _tile_stored(3, sums + 16 * 32 + 16, sums_step);
  }
}

}  // namespace

bool cpu_has_int8_vectors() {
  return __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}

bool cpu_has_int8_tiles() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned byte_tiles = 1U << 25;
    return cpu_has_int8_vectors() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (d & byte_tiles) != 0 && cpu_bf16().tiles;  // which asks the kernel for them
  }();
  return has;
}

RONDO_VNNI void int8_by_vectors(const Int8Work& work) {
  const int64_t rows = work.x->rows;
  for (int64_t column = work.first; column < work.last; column += kInt8Columns) {
    int64_t r = 0;
    for (; r + 6 <= rows; r += 6) vector_block<6, kTogether>(work, r, column);
    for (; r + 3 <= rows; r += 3) vector_block<3, kTogether>(work, r, column);
    for (; r < rows; ++r) vector_block<1, kTogether>(work, r, column);
  }
}

RONDO_TILES void int8_by_tiles(const Int8Work& work) {
  alignas(64) const TileShapes shapes;
  _tile_loadconfig(&shapes);
  alignas(64) int32_t sums[32 * 32];
  const int64_t rows = work.x->rows;
  for (int64_t column = work.first; column < work.last; column += 2 * kInt8Block) {
    for (int64_t r = 0; r < rows; r += 32) {
      rows - r > 16 ? tile_block<true>(work, r, column, sums)
                    : tile_block<false>(work, r, column, sums);
      for (int64_t i = 0; i < std::min<int64_t>(32, rows - r); ++i) {
        finish_row(work, _mm512_load_si512(sums + i * 32), r + i, column);
        if (column + kInt8Block < work.last) {
          finish_row(work, _mm512_load_si512(sums + i * 32 + 16), r + i, column + kInt8Block);
        }
      }
    }
  }
  _tile_release();
}

}  // namespace rondo::kernels

#else
#include <stdexcept>

namespace rondo::kernels {

bool cpu_has_int8_vectors() { return false; }
bool cpu_has_int8_tiles() { return false; }
void int8_by_vectors(const Int8Work& /*work*/) { throw std::logic_error("built without VNNI"); }
void int8_by_tiles(const Int8Work& /*work*/) { throw std::logic_error("built without AMX"); }

}  // namespace rondo::kernels

#endif
