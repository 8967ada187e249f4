// Packing bf16 into twelve bits.
#include "rondo/kernels/bf12.h"

#include <algorithm>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr uint32_t kExponents = 15;  // the largest of four bits

uint32_t bf16_bits(float x) {
  Bf16 half;
  narrow(x, half);
  return half.bits;
}

uint32_t exponent_of(uint32_t half) { return half >> 7U & 0xffU; }

// s.... eeee mmmmmmm, `largest` being the exponent that becomes 15.
uint32_t shortened(uint32_t half, uint32_t largest) {
  const uint32_t below = largest - exponent_of(half);
  const uint32_t sign = half & 0x8000U;
  if (below > kExponents) return sign;  // exponent and mantissa 0: the smallest
  return sign | (kExponents - below) << 7U | (half & 0x7fU);
}

// The dots of three halves, at bits 14-11 of each.
struct Dots {
  uint32_t of[kBf12Words];
};
Dots dots(uint32_t number) {
  return {{(number & 0x0780U) << 4U, (number & 0x0078U) << 8U,
           (number & 0x8000U) >> 1U | (number & 0x0007U) << 11U}};
}

}  // namespace

float bf12_scale(const float* row, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, exponent_of(bf16_bits(row[i])));
  return bits_float(largest << 23U);
}

void pack_bf12(const float* numbers, float scale, uint32_t* words, int64_t step) {
  const uint32_t largest = float_bits(scale) >> 23U;
  uint32_t halves[kBf12Columns];
  for (int64_t i = 0; i < kBf12Columns; ++i) {
    const uint32_t half = bf16_bits(numbers[i]);
    // What stands for zeros should have no sign of its own, so that it does not add up.
    const uint32_t sign = half == 0 && i % 2 == 1 ? 0x8000U : 0U;
    halves[i] = shortened(half | sign, largest);
  }
  const Dots upper = dots(halves[6]);
  const Dots lower = dots(halves[7]);
  for (int64_t k = 0; k < kBf12Words; ++k) {
    words[k * step] = (halves[2 * k] | upper.of[k]) << 16U | halves[2 * k + 1] | lower.of[k];
  }
}

}  // namespace rondo::kernels
