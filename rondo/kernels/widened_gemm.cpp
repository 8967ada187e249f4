// Blocks, widened and multiplied.
#include "rondo/kernels/widened_gemm.h"

#ifdef RONDO_DNNL
#include <dnnl.h>

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

// Half a megabyte for each side: both stay in a second cache.
constexpr int64_t kBlockRows = 256;
constexpr int64_t kBlockColumns = 256;
constexpr int64_t kBlockDepth = 512;

RONDO_CLONES
void widen_row(const uint16_t* __restrict from, uint32_t* __restrict to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint32_t>(from[i]) << 16U;
}

// A block of a matrix in fp32, as it lies in memory.
struct Block {
  int64_t step = 0;            // from one row to the next
  std::vector<uint32_t> bits;  // of numbers that were widened
  const float* numbers() const { return reinterpret_cast<const float*>(bits.data()); }
};

void take_block(const uint16_t* from, int64_t step, int64_t rows, int64_t columns, Block& to) {
  to.bits.resize(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    widen_row(from + r * step, to.bits.data() + r * columns, columns);
  }
  to.step = columns;
}

// The given part of op(x), which lies with `step` numbers between rows.
void take_operand(const uint16_t* x, bool transposed, int64_t step, Part place, Block& to) {
  if (transposed) {
    take_block(x + place.column * step + place.row, step, place.n, place.m, to);
  } else {
    take_block(x + place.row * step + place.column, step, place.m, place.n, to);
  }
}

}  // namespace

bool widened_gemm(const Product& p, const Part& part, const uint16_t* a, const uint16_t* b,
                  float* c) {
  thread_local Block left;  // used again by the next product
  thread_local Block right;
  const int64_t a_step = p.transpose_a ? p.m : p.k;
  const int64_t b_step = p.transpose_b ? p.k : p.n;
  const int64_t last_row = part.row + part.m;
  const int64_t last_column = part.column + part.n;
  for (int64_t column = part.column; column < last_column; column += kBlockColumns) {
    const int64_t n = std::min(kBlockColumns, last_column - column);
    for (int64_t depth = 0; depth < p.k; depth += kBlockDepth) {
      const int64_t k = std::min(kBlockDepth, p.k - depth);
      take_operand(b, p.transpose_b, b_step, {depth, column, k, n}, right);
      const float beta = depth == 0 ? p.beta : 1.0F;
      for (int64_t row = part.row; row < last_row; row += kBlockRows) {
        const int64_t m = std::min(kBlockRows, last_row - row);
        take_operand(a, p.transpose_a, a_step, {row, depth, m, k}, left);
        const auto status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m, n,
                                       k, p.alpha, left.numbers(), left.step, right.numbers(),
                                       right.step, beta, c + row * p.n + column, p.n);
        if (status != dnnl_success) return false;
      }
    }
  }
  return true;
}

}  // namespace rondo::kernels
#endif
