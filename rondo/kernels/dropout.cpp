// Dropout by hashing the position: two rounds of multiply and shift (the finalizer of MurmurHash3)
// on 32-bit lanes, which compilers vectorize.
#include "rondo/kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kStretch = int64_t{1} << 20;  // positions that share one 32-bit key

uint32_t mix(uint64_t h) {
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<uint32_t>(h ^ (h >> 33));
}

template <class Number>
RONDO_INLINE void drop_numbers(const Number* x, Number* y, uint32_t place, int64_t count,
                               uint32_t threshold, float scale, uint32_t key) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    uint32_t h = (place + static_cast<uint32_t>(i)) * 0x9e3779b9U ^ key;
    h = (h ^ (h >> 16)) * 0x85ebca6bU;
    h = (h ^ (h >> 13)) * 0xc2b2ae35U;
    h = h ^ (h >> 16);
    narrow(h >= threshold ? widen(x[i]) * scale : 0.0F, y[i]);
  }
}

// The compiler clones functions but not templates.
RONDO_CLONES
void drop_stretch(const float* x, float* y, uint32_t place, int64_t count, uint32_t threshold,
                  float scale, uint32_t key) {
  drop_numbers(x, y, place, count, threshold, scale, key);
}
RONDO_CLONES
void drop_stretch(const Bf16* x, Bf16* y, uint32_t place, int64_t count, uint32_t threshold,
                  float scale, uint32_t key) {
  drop_numbers(x, y, place, count, threshold, scale, key);
}

template <class Number>
void drop_all(const Number* x, Number* y, int64_t first, int64_t count, double rate,
              uint64_t seed) {
  const auto threshold = static_cast<uint32_t>(std::llround(rate * 4294967295.0));
  const auto scale = static_cast<float>(1.0 / (1.0 - rate));
  for (int64_t done = 0; done < count;) {
    const int64_t at = first + done;
    const int64_t stretch = at / kStretch;
    const int64_t part = std::min(count - done, (stretch + 1) * kStretch - at);
    const uint32_t key = mix(seed + static_cast<uint64_t>(stretch) * 0x9e3779b97f4a7c15ULL);
    drop_stretch(x + done, y + done, static_cast<uint32_t>(at % kStretch), part, threshold, scale,
                 key);
    done += part;
  }
}

}  // namespace

void dropout(const float* x, float* y, int64_t first, int64_t count, double rate, uint64_t seed) {
  drop_all(x, y, first, count, rate, seed);
}
void dropout(const Bf16* x, Bf16* y, int64_t first, int64_t count, double rate, uint64_t seed) {
  drop_all(x, y, first, count, rate, seed);
}

}  // namespace rondo::kernels
