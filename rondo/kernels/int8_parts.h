// The ways to multiply bytes, behind int8.h.
#pragma once

#include "rondo/kernels/int8.h"

namespace rondo::kernels {

constexpr int64_t kInt8Block = 16;  // rows of a weight that are packed together
constexpr int64_t kInt8Unit = 4;    // bytes that one instruction sums

struct Int8Work {
  const Int8Rows* x = nullptr;
  const Int8Matrix* w = nullptr;
  const float* bias = nullptr;
  int64_t first = 0;  // columns of y
  int64_t last = 0;
  float* y = nullptr;
  int64_t stride = 0;  // from one row of y to the next
};

void int8_by_words(const Int8Work& work);
void int8_by_vectors(const Int8Work& work);

}  // namespace rondo::kernels
