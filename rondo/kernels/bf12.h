// bf16 weights in twelve bits: four of exponent, counted down from the largest of the row, where
// bf16 has eight. A number smaller than the 2¹⁵th part of its row's largest becomes that part, with
// its sign; every other one is kept bit for bit. A row's numbers are formed as if its largest lay
// between 1 and 2, so that a product needs the row's scale, a power of two, only at its end.
//
// Eight columns of a row take three words of 32 bits. Each half of a word holds a number as
//     s.... eeee mmmmmmm        (bits 15, 10-7, 6-0)
// which lies as an fp32 wants it, but for the dots: the bits of its exponent that never change. Of
// the words' upper halves those dots, four each, are the seventh number, of the lower ones the
// eighth:
//     word 0  .eeee             word 1  .mmmm (upper)             word 2  .smmm (lower)
// Reading takes shifts and masks of whole words alone (panels-inl.h). No torch here.
#pragma once

#include <cstdint>

namespace rondo::kernels {

constexpr int64_t kBf12Columns = 8;
constexpr int64_t kBf12Words = 3;

// In an fp32, the bits that are kept, and those that are always set: exponents 112 to 127.
constexpr uint32_t kBf12Kept = 0x87ff0000U;
constexpr uint32_t kBf12Exponent = 0x38000000U;
// Of two halves, the parts of the seventh and eighth number when moved to their place.
constexpr uint32_t kBf12ExponentPart = 0x07800780U;  // word 0 >> 4
constexpr uint32_t kBf12UpperPart = 0x00780078U;     // word 1 >> 8
constexpr uint32_t kBf12SignPart = 0x80008000U;      // word 2 << 1
constexpr uint32_t kBf12LowerPart = 0x00070007U;     // word 2 >> 11

// What a row's sums are to be multiplied by: 2^(exponent of its largest number); 0 if all are.
float bf12_scale(const float* row, int64_t count);

// Eight numbers, rounded to bf16, of a row with that scale → words[0], words[step], words[2 step].
void pack_bf12(const float* numbers, float scale, uint32_t* words, int64_t step);

}  // namespace rondo::kernels
