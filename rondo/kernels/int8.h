// Matrix multiplication with int8 weights for inference: each weight row has its own scale, each
// input row gets one on the fly (dynamic, per row); products are accumulated in int32 and scaled to
// fp32 at the end. Sums are exact (never saturated) on every CPU, so all implementations give the
// same result. No torch dependency.
#pragma once

#include <cstdint>
#include <vector>

namespace rondo::kernels {

// How bytes are multiplied: by loops that the compiler vectorizes, widened to 16 bits (AVX2), or by
// AVX-512 VNNI.
enum class Int8Products { plain, words, vectors };
// What this CPU supports, best first; the last is plain.
std::vector<Int8Products> int8_products();

// Results are computed in groups of this many columns.
constexpr int64_t kInt8Columns = 64;

// w ≈ scale · q, row by row, with |q| ≤ 127; at most 65,000 columns. Packed once: plain as
// [out, step], otherwise as [out / 16, step / 4, 16, 4], so that the values 16 rows multiply in
// turn are adjacent. step: columns rounded up to a multiple of 64, zero-padded.
struct Int8Matrix {
  Int8Products products = Int8Products::plain;
  int64_t out = 0;
  int64_t in = 0;
  int64_t step = 0;
  std::vector<int8_t> q;
  std::vector<float> scale;    // [out]
  std::vector<int32_t> shift;  // [out]: 128 · Σ q, the excess caused by unsigned inputs
};
Int8Matrix quantize_rows(const float* w, int64_t out, int64_t in,
                         Int8Products products = int8_products().front());

// Input rows as unsigned bytes, as the CPU instructions expect: x ≈ scale · (q - 128).
struct Int8Rows {
  int64_t rows = 0;
  int64_t step = 0;
  std::vector<uint8_t> q;    // [rows, step]
  std::vector<float> scale;  // [rows]
};
// Allocates; then rows [first, last) can be quantized, by several threads.
void prepare_input(int64_t rows, int64_t in, Int8Rows& result);
void quantize_input(const float* x, int64_t stride, int64_t first, int64_t last, int64_t in,
                    Int8Rows& result);

// Groups [first, last) of kInt8Columns columns of y [rows, out] = x · wᵀ (+ bias [out], may be
// null). Rows of y are `stride` apart.
void int8_product(const Int8Rows& x, const Int8Matrix& w, const float* bias, int64_t first,
                  int64_t last, float* y, int64_t stride);

// ---- implementations behind int8_product() ----

constexpr int64_t kInt8Block = 16;  // weight rows packed together
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
