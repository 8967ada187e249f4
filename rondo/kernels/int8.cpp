// int8 matmuls: quantization, packing, plain implementation.
#include "rondo/kernels/int8.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/cpu.h"
#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr float kLargest = 127.0F;
constexpr int32_t kShift = 128;
constexpr int64_t kInt8Step = 64;

int64_t up_to(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Magnitudes compare like their bits; NaN compares largest, so it propagates.
RONDO_CLONES
float scale_of(const float* row, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, float_bits(row[i]) & 0x7fffffffU);
  }
  return bits_float(largest) / kLargest;
}

RONDO_CLONES
void write_bytes(const float* row, int64_t count, float inverse, uint8_t* q) {
  for (int64_t i = 0; i < count; ++i) {
    // NaN becomes a valid byte; the row's scale is NaN, and so are its results.
    const float byte = std::max(-kLargest, std::rint(row[i] * inverse));
    q[i] = static_cast<uint8_t>(static_cast<int32_t>(byte) + kShift);
  }
}

RONDO_CLONES
int32_t byte_dot(const uint8_t* a, const int8_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  }
  return sum;
}

void int8_by_loops(const Int8Work& work) {
  const Int8Rows& x = *work.x;
  const Int8Matrix& w = *work.w;
  for (int64_t o = work.first; o < work.last; ++o) {
    const int8_t* weights = w.q.data() + o * w.step;
    const int32_t shift = w.shift[static_cast<size_t>(o)];
    const float scale = w.scale[static_cast<size_t>(o)];
    const float add = work.bias != nullptr ? work.bias[o] : 0.0F;
    for (int64_t r = 0; r < x.rows; ++r) {
      const int32_t sum = byte_dot(x.q.data() + r * x.step, weights, w.step) - shift;
      work.y[r * work.stride + o] =
          static_cast<float>(sum) * scale * x.scale[static_cast<size_t>(r)] + add;
    }
  }
}

// Position of q (o, i).
int64_t place_of(const Int8Matrix& m, int64_t o, int64_t i) {
  if (m.products == Int8Products::plain) return o * m.step + i;
  const int64_t block = o / kInt8Block * kInt8Block * m.step;
  return block + i / kInt8Unit * kInt8Block * kInt8Unit + o % kInt8Block * kInt8Unit +
         i % kInt8Unit;
}

}  // namespace

std::vector<Int8Products> int8_products() {
  std::vector<Int8Products> found;
  if (cpu().avx512_vnni) found.push_back(Int8Products::vectors);
  if (cpu().avx2 && cpu().fma) found.push_back(Int8Products::words);
  found.push_back(Int8Products::plain);
  return found;
}

Int8Matrix quantize_rows(const float* w, int64_t out, int64_t in, Int8Products products) {
  Int8Matrix m;
  m.products = products;
  m.out = out;
  m.in = in;
  m.step = up_to(in, kInt8Step);
  m.q.resize(static_cast<size_t>(up_to(out, kInt8Columns) * m.step));
  m.scale.resize(static_cast<size_t>(up_to(out, kInt8Columns)));
  m.shift.resize(static_cast<size_t>(up_to(out, kInt8Columns)));
  for (int64_t o = 0; o < out; ++o) {
    const float* row = w + o * in;
    const float scale = scale_of(row, in);
    const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
    int32_t sum = 0;
    for (int64_t i = 0; i < in; ++i) {
      const auto q = static_cast<int8_t>(std::lrint(row[i] * inverse));
      m.q[static_cast<size_t>(place_of(m, o, i))] = q;
      sum += q;
    }
    m.scale[static_cast<size_t>(o)] = scale;
    m.shift[static_cast<size_t>(o)] = kShift * sum;
  }
  return m;
}

void prepare_input(int64_t rows, int64_t in, Int8Rows& result) {
  result.rows = rows;
  result.step = up_to(in, kInt8Step);
  const auto bytes = static_cast<size_t>(rows * result.step);
  if (result.q.size() < bytes) result.q.resize(bytes);
  if (result.scale.size() < static_cast<size_t>(rows)) {
    result.scale.resize(static_cast<size_t>(rows));
  }
}

void quantize_input(const float* x, int64_t stride, int64_t first, int64_t last, int64_t in,
                    Int8Rows& result) {
  for (int64_t r = first; r < last; ++r) {
    const float* row = x + r * stride;
    const float scale = scale_of(row, in);
    uint8_t* q = result.q.data() + r * result.step;
    write_bytes(row, in, scale > 0.0F ? 1.0F / scale : 0.0F, q);
    result.scale[static_cast<size_t>(r)] = scale;
  }
}

void int8_product(const Int8Rows& x, const Int8Matrix& w, const float* bias, int64_t first,
                  int64_t last, float* y, int64_t stride) {
  const Int8Work work = {
      &x, &w, bias, first * kInt8Columns, std::min(last * kInt8Columns, w.out), y, stride};
  if (w.products == Int8Products::plain) return int8_by_loops(work);
  if (w.products == Int8Products::words) return int8_by_words(work);
  int8_by_vectors(work);
}

}  // namespace rondo::kernels
