// int8 matmuls with AVX-512 VNNI, which sums products of four unsigned × signed bytes, and with
// AVX2, whose older byte instruction saturates: there, bytes are widened to 16 bits and their
// products summed by pairs in 32 bits. Both use the same weight layout.
#include "rondo/kernels/int8.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "rondo/kernels/unroll.h"

#define RONDO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define RONDO_AVX2 __attribute__((target("avx2,fma")))

namespace rondo::kernels {
namespace {

// ---- VNNI --------------------------------------------------------------------------------------

// Mask of the existing columns among the 16 from `column`.
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

// ---- AVX2 --------------------------------------------------------------------------------------

constexpr int64_t kWordColumns = 8;  // two vectors of sums: two partial sums per column

// Rows widened at a time: they stay in the L1 cache, while weights are reread from L2 for each such
// block.
int64_t word_rows(int64_t step) {
  constexpr int64_t kWords = 12288;
  return std::max<int64_t>(8, kWords / step / 4 * 4);
}

// Rows [first, last) of x as 16-bit words.
RONDO_AVX2 void widen_rows(const Int8Rows& x, int64_t first, int64_t last, int16_t* to) {
  const uint8_t* from = x.q.data() + first * x.step;
  for (int64_t i = 0; i < (last - first) * x.step; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_cvtepu8_epi16(bytes));
  }
}

// y = (sum - shift) · scale of the column · scale of the row + bias, for 8 columns of row r.
RONDO_AVX2 inline void finish_words(const Int8Work& work, __m256i low, __m256i high, int64_t r,
                                    int64_t column) {
  const Int8Matrix& w = *work.w;
  // Pairs of sums come out as columns 0 1 4 5 2 3 6 7.
  __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
  const auto* shift = reinterpret_cast<const __m256i*>(w.shift.data() + column);
  sum = _mm256_sub_epi32(sum, _mm256_loadu_si256(shift));
  __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(w.scale.data() + column));
  y = _mm256_mul_ps(y, _mm256_set1_ps(work.x->scale[static_cast<size_t>(r)]));
  float* to = work.y + r * work.stride + column;
  if (column + kWordColumns <= work.last) {
    if (work.bias != nullptr) y = _mm256_add_ps(y, _mm256_loadu_ps(work.bias + column));
    return _mm256_storeu_ps(to, y);
  }
  alignas(32) float rest[kWordColumns];
  _mm256_store_ps(rest, y);
  for (int64_t i = 0; i < work.last - column; ++i) {
    to[i] = work.bias != nullptr ? rest[i] + work.bias[column + i] : rest[i];
  }
}

// kRows rows from r, widened in `x`, × 8 columns stay in registers.
template <int kRows>
RONDO_AVX2 void word_block(const Int8Work& work, const int16_t* x, int64_t r, int64_t column) {
  const int64_t step = work.x->step;
  const int8_t* w =
      work.w->q.data() + column / kInt8Block * kInt8Block * step + column % kInt8Block * kInt8Unit;
  __m256i sums[kRows][2];
  RONDO_UNROLL
  for (int i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = _mm256_setzero_si256();
  for (int64_t k = 0; k < step; k += kInt8Unit, w += kInt8Block * kInt8Unit) {
    const auto* bytes = reinterpret_cast<const __m128i*>(w);
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));  // 4 columns of 4 words
    const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1));
    RONDO_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const auto* four = reinterpret_cast<const __m128i*>(x + i * step + k);
      const __m256i words = _mm256_broadcastq_epi64(_mm_loadl_epi64(four));
      sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(words, low));
      sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(words, high));
    }
  }
  RONDO_UNROLL
  for (int i = 0; i < kRows; ++i) finish_words(work, sums[i][0], sums[i][1], r + i, column);
}

}  // namespace

RONDO_VNNI void int8_by_vectors(const Int8Work& work) {
  const int64_t rows = work.x->rows;
  for (int64_t column = work.first; column < work.last; column += kInt8Columns) {
    int64_t r = 0;
    for (; r + 6 <= rows; r += 6) vector_block<6, kTogether>(work, r, column);
    for (; r + 3 <= rows; r += 3) vector_block<3, kTogether>(work, r, column);
    for (; r < rows; ++r) vector_block<1, kTogether>(work, r, column);
  }
}

void int8_by_words(const Int8Work& work) {
  const int64_t rows = work.x->rows;
  const int64_t step = work.x->step;
  const int64_t block = std::min(rows, word_rows(step));
  thread_local std::vector<int16_t> words;  // reused by the next product
  words.resize(static_cast<size_t>(block * step));
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t last = std::min(rows, first + block);
    widen_rows(*work.x, first, last, words.data());
    const int16_t* x = words.data() - first * step;
    for (int64_t column = work.first; column < work.last; column += kWordColumns) {
      int64_t r = first;
      for (; r + 4 <= last; r += 4) word_block<4>(work, x + r * step, r, column);
      for (; r < last; ++r) word_block<1>(work, x + r * step, r, column);
    }
  }
}

}  // namespace rondo::kernels

#else
#include <stdexcept>

namespace rondo::kernels {

void int8_by_vectors(const Int8Work& /*work*/) { throw std::logic_error("built without VNNI"); }
void int8_by_words(const Int8Work& /*work*/) { throw std::logic_error("built without AVX2"); }

}  // namespace rondo::kernels

#endif
