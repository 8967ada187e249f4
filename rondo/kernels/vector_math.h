// Scalar functions written so that compilers vectorize loops over them, which the C library's
// versions prevent because they set errno. Also bf16, the upper half of a float.
#pragma once

#include <cstdint>
#include <cstring>

// Inlines into functions compiled for other CPUs too (clones.h).
#define RONDO_INLINE inline __attribute__((always_inline))

namespace rondo::kernels {

RONDO_INLINE uint32_t float_bits(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

RONDO_INLINE float bits_float(uint32_t bits) {
  float x = 0.0F;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// ---- values in memory: fp32 or bf16 -----------------------------------------------------------

struct Bf16 {
  uint16_t bits = 0;
};

RONDO_INLINE float widen(float x) { return x; }
RONDO_INLINE float widen(Bf16 x) { return bits_float(static_cast<uint32_t>(x.bits) << 16U); }

RONDO_INLINE void narrow(float x, float& to) { to = x; }
// Rounds to nearest, ties to even, as torch does; NaN stays NaN.
RONDO_INLINE void narrow(float x, Bf16& to) {
  const uint32_t bits = float_bits(x);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  to.bits = static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : rounded);
}

// ---- functions --------------------------------------------------------------------------------
// Selections use masks instead of ?:, which compilers may turn into branches.

// x if `keep`, otherwise 0.
RONDO_INLINE float keep_if(bool keep, float x) {
  return bits_float(float_bits(x) & (0U - static_cast<uint32_t>(keep)));
}

// e^x for x ≤ 88 to within 2 ulp; 0 below -87.3, NaN for NaN.
RONDO_INLINE float exponential(float x) {
  constexpr float lowest = -87.3F;
  constexpr float shift = 12582912.0F;  // 1.5 · 2²³: adding it rounds to an integer
  const float shifted = x * 1.44269504F + shift;
  const float whole = shifted - shift;
  const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float power = bits_float((float_bits(shifted) - float_bits(shift) + 127U) << 23U);
  return keep_if(!(x < lowest), (p * r * r + r + 1.0F) * power);
}

// Clamps x to [-bound, bound]. NaN stays NaN.
RONDO_INLINE float within(float x, float bound) {
  const float below = bound < x ? bound : x;
  return below < -bound ? -bound : below;
}

// erf(x) to within 2e-7: a rational function on [-4, 4], beyond which it is ±1 in fp32.
RONDO_INLINE float error_function(float x) {
  const float in = within(x, 4.0F);
  const float s = in * in;
  float p = -2.72614225801306e-10F;
  p = p * s + 2.77068142495902e-08F;
  p = p * s - 2.10102402082508e-06F;
  p = p * s - 5.69250639462346e-05F;
  p = p * s - 7.34990630326855e-04F;
  p = p * s - 2.95459980854025e-03F;
  p = p * s - 1.60960333262415e-02F;
  float q = -1.45660718464996e-05F;
  q = q * s - 2.13374055278905e-04F;
  q = q * s - 1.68282697438203e-03F;
  q = q * s - 7.37332916720468e-03F;
  q = q * s - 1.42647390514189e-02F;
  return in * p / q;
}

// Φ(x) + x · φ(x), the derivative of x · Φ(x), to within 2.5e-7: 1/2 plus an odd rational function
// fitted on [-6, 6], beyond which it is 0 or 1 in fp32.
RONDO_INLINE float normal_slope(float x) {
  const float in = within(x, 6.0F);
  const float s = in * in;
  float p = 1.704605022e-08F;
  p = p * s + 9.225218058e-07F;
  p = p * s + 3.409182902e-05F;
  p = p * s + 2.027307043e-04F;
  p = p * s + 1.385733561e-02F;
  p = p * s - 2.237127267e-02F;
  p = p * s + 7.978845312e-01F;
  float q = 1.314740357e-09F;
  q = q * s + 3.389738557e-07F;
  q = q * s + 1.030770052e-05F;
  q = q * s + 2.453235389e-04F;
  q = q * s + 3.971505160e-03F;
  q = q * s + 4.413357873e-02F;
  q = q * s + 3.052947297e-01F;
  q = q * s + 1.0F;
  return 0.5F + in * p / q;
}

}  // namespace rondo::kernels
