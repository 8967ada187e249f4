// Matrix products with 8-bit weights for inference: every weight row has its own scale, every input
// row gets one on the fly ("dynamic, per row"), products are summed in 32-bit whole numbers and
// scaled to fp32 at the end. Sums are exact (never saturated) on every CPU, so all ways to multiply
// give the same result. No torch here.
#pragma once

#include <cstdint>
#include <vector>

namespace rondo::kernels {

// How bytes are multiplied: by loops that the compiler makes vectors of, widened to words (AVX2),
// by AVX-512's own instruction (VNNI).
enum class Int8Products { plain, words, vectors };
// What this CPU has, best first; the last is plain.
std::vector<Int8Products> int8_products();

// Results are computed in groups of so many columns.
constexpr int64_t kInt8Columns = 64;

// w ≈ scale · q, row by row, with |q| ≤ 127; at most 65,000 columns. Packed once for the products:
// plain as [out, step]; else as [out / 16, step / 4, 16, 4], so that what 16 rows multiply one
// after the other lies side by side. step: columns up to a multiple of 64; zeros fill up.
struct Int8Matrix {
  Int8Products products = Int8Products::plain;
  int64_t out = 0;
  int64_t in = 0;
  int64_t step = 0;
  std::vector<int8_t> q;
  std::vector<float> scale;    // [out]
  std::vector<int32_t> shift;  // [out]: 128 · Σ q, which is too much because inputs are unsigned
};
Int8Matrix quantize_rows(const float* w, int64_t out, int64_t in,
                         Int8Products products = int8_products().front());

// Input rows as unsigned bytes, as the CPUs' instructions want them: x ≈ scale · (q - 128).
struct Int8Rows {
  int64_t rows = 0;
  int64_t step = 0;
  std::vector<uint8_t> q;    // [rows, step]
  std::vector<float> scale;  // [rows]
};
// Makes room; then rows [first, last) may be quantized, by several threads.
void prepare_input(int64_t rows, int64_t in, Int8Rows& result);
void quantize_input(const float* x, int64_t stride, int64_t first, int64_t last, int64_t in,
                    Int8Rows& result);

// Groups [first, last) of kInt8Columns columns of y [rows, out] = x · wᵀ (+ bias [out], may be
// null), whose rows are `stride` apart.
void int8_product(const Int8Rows& x, const Int8Matrix& w, const float* bias, int64_t first,
                  int64_t last, float* y, int64_t stride);

// ---- the ways to multiply, behind int8_product() ----

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
