// 8-bit products. The inner loop is written so that the compiler turns it into the CPU's own
// instruction for unsigned × signed byte sums where there is one (AVX-512 VNNI), which is why
// inputs are shifted to unsigned; the shift is taken out again with the weight row's sum.
#include "rondo/kernels/int8.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

constexpr float kLargest = 127.0F;
constexpr int32_t kShift = 128;

float scale_of(const float* row, int64_t count) {
  float largest = 0.0F;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(row[i]));
  return largest / kLargest;
}

RONDO_CLONES
int32_t byte_dot(const uint8_t* a, const int8_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  }
  return sum;
}

}  // namespace

Int8Matrix quantize_rows(const float* w, int64_t out, int64_t in) {
  Int8Matrix m;
  m.out = out;
  m.in = in;
  m.q.resize(static_cast<size_t>(out * in));
  m.scale.resize(static_cast<size_t>(out));
  m.sums.resize(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    const float* row = w + o * in;
    const float scale = scale_of(row, in);
    const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
    int32_t sum = 0;
    for (int64_t i = 0; i < in; ++i) {
      const auto q = static_cast<int8_t>(std::lrint(row[i] * inverse));
      m.q[static_cast<size_t>(o * in + i)] = q;
      sum += q;
    }
    m.scale[static_cast<size_t>(o)] = scale;
    m.sums[static_cast<size_t>(o)] = sum;
  }
  return m;
}

void quantize_input(const float* x, int64_t rows, int64_t in, Int8Rows& result) {
  result.rows = rows;
  result.in = in;
  result.q.resize(static_cast<size_t>(rows * in));
  result.scale.resize(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * in;
    const float scale = scale_of(row, in);
    const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
    uint8_t* q = result.q.data() + r * in;
    for (int64_t i = 0; i < in; ++i) {
      q[i] = static_cast<uint8_t>(std::lrint(row[i] * inverse) + kShift);
    }
    result.scale[static_cast<size_t>(r)] = scale;
  }
}

void int8_product(const Int8Rows& x, const Int8Matrix& w, const float* bias, int64_t first,
                  int64_t last, float* y) {
  for (int64_t o = first; o < last; ++o) {
    const int8_t* weights = w.q.data() + o * w.in;
    const int32_t shift = kShift * w.sums[static_cast<size_t>(o)];
    const float scale = w.scale[static_cast<size_t>(o)];
    const float add = bias != nullptr ? bias[o] : 0.0F;
    for (int64_t r = 0; r < x.rows; ++r) {
      const int32_t sum = byte_dot(x.q.data() + r * x.in, weights, w.in) - shift;
      y[r * w.out + o] = static_cast<float>(sum) * scale * x.scale[static_cast<size_t>(r)] + add;
    }
  }
}

}  // namespace rondo::kernels
