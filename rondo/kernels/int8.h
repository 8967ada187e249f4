// Matrix products with 8-bit weights for inference: every weight row has its own scale, every input
// row gets one on the fly ("dynamic, per row"), products are summed in 32-bit whole numbers and
// scaled to fp32 at the end. No torch here: plain pointers, compiled for several CPUs and chosen at
// run time.
#pragma once

#include <cstdint>
#include <vector>

namespace rondo::kernels {

// w ≈ scale · q, row by row, with |q| ≤ 127. sums[o] is the sum of row o of q.
struct Int8Matrix {
  int64_t out = 0;
  int64_t in = 0;
  std::vector<int8_t> q;      // [out, in]
  std::vector<float> scale;   // [out]
  std::vector<int32_t> sums;  // [out]
};
Int8Matrix quantize_rows(const float* w, int64_t out, int64_t in);

// Input rows as unsigned bytes: x ≈ scale · (q - 128).
struct Int8Rows {
  int64_t rows = 0;
  int64_t in = 0;
  std::vector<uint8_t> q;    // [rows, in]
  std::vector<float> scale;  // [rows]
};
void quantize_input(const float* x, int64_t rows, int64_t in, Int8Rows& result);

// Columns [first, last) of y [rows, out] = x · wᵀ (+ bias [out], may be null). Threads may share
// one y between them by columns.
void int8_product(const Int8Rows& x, const Int8Matrix& w, const float* bias, int64_t first,
                  int64_t last, float* y);

}  // namespace rondo::kernels
