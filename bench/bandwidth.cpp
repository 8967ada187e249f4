// Memory bandwidth.
#include "bench/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"

namespace rondo {
namespace {

constexpr int64_t kBandwidthPiece = 1 << 13;  // words: 64 KiB

// Independent sums, so that no addition waits for the previous one.
RONDO_CLONES
uint64_t sum_words(const uint64_t* words, int64_t count) {
  constexpr int64_t kLanes = 32;
  uint64_t sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) sums[k] += words[i + k];
  }
  uint64_t sum = 0;
  for (; i < count; ++i) sum += words[i];
  for (const uint64_t s : sums) sum += s;
  return sum;
}

void copy_piece(const uint64_t* from, uint64_t* to, int64_t count) {
#ifdef __SSE2__
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const auto* f = reinterpret_cast<const __m128i*>(from + i);
      auto* t = reinterpret_cast<__m128i*>(to + i);
      const __m128i a = _mm_loadu_si128(f);
      const __m128i b = _mm_loadu_si128(f + 1);
      const __m128i c = _mm_loadu_si128(f + 2);
      const __m128i d = _mm_loadu_si128(f + 3);
      _mm_stream_si128(t, a);
      _mm_stream_si128(t + 1, b);
      _mm_stream_si128(t + 2, c);
      _mm_stream_si128(t + 3, d);
    }
    for (; i < count; ++i) to[i] = from[i];
    _mm_sfence();
    return;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(uint64_t));
}

}  // namespace

uint64_t read_words(const uint64_t* words, int64_t count) {
  std::atomic<uint64_t> sum{0};
  kernels::parallel_ranges(count, true, [&](int64_t first, int64_t last) {
    sum += sum_words(words + first, last - first);
  });
  return sum;
}

void copy_words(const uint64_t* from, uint64_t* to, int64_t count) {
  const int64_t pieces = (count + kBandwidthPiece - 1) / kBandwidthPiece;
  kernels::parallel_for(pieces, true, [&](int64_t p) {
    const int64_t first = p * kBandwidthPiece;
    copy_piece(from + first, to + first, std::min(kBandwidthPiece, count - first));
  });
}

}  // namespace rondo
