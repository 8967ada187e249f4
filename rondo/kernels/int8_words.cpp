// 8-bit products by AVX2, for CPUs without an instruction for bytes that does not saturate: bytes
// become words of 16 bits, whose products are summed by pairs in 32 bits. Weights lie as for VNNI.
#include "rondo/kernels/int8_parts.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>

#include <algorithm>

#include "rondo/kernels/unroll.h"

#define RONDO_AVX2 __attribute__((target("avx2,fma")))

namespace rondo::kernels {
namespace {

constexpr int64_t kWordColumns = 8;  // whose sums are two vectors: two partial sums a column

// Rows that are widened at a time: they stay in the first cache, but weights are read for each such
// block again, from the second.
int64_t word_rows(int64_t step) {
  constexpr int64_t kWords = 12288;
  return std::max<int64_t>(8, kWords / step / 4 * 4);
}

// Rows [first, last) of x as words.
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

// kRows rows from r, whose words are `x`, × 8 columns stay in registers.
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

bool cpu_has_int8_words() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

void int8_by_words(const Int8Work& work) {
  const int64_t rows = work.x->rows;
  const int64_t step = work.x->step;
  const int64_t block = std::min(rows, word_rows(step));
  thread_local std::vector<int16_t> words;  // used again by the next product
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

bool cpu_has_int8_words() { return false; }
void int8_by_words(const Int8Work& /*work*/) { throw std::logic_error("built without AVX2"); }

}  // namespace rondo::kernels

#endif
