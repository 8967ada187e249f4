// Rows are split into pieces, one thread each.
#include "rondo/kernels/matmul.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/gemm.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

int64_t rows_per_piece(int64_t rows, int64_t n) {
  const int64_t fits = kPieceNumbers / std::max<int64_t>(1, n) / 32 * 32;
  const int64_t even = (rows + 127) / 128 * 32;  // several pieces per thread
  return std::max<int64_t>(32, std::min(std::clamp<int64_t>(fits, 64, 512), even));
}

// One row; `bias` and `addend` are never null.
RONDO_CLONES
void write_row(const float* sums, float scale, const float* bias, const float* addend,
               int64_t count, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = scale * sums[i] + bias[i] + addend[i];
}
RONDO_CLONES
void write_row(const float* sums, float scale, const float* bias, const float* addend,
               int64_t count, Bf16* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) narrow(scale * sums[i] + bias[i] + addend[i], y[i]);
}

void products_by_gemm(const std::vector<RowTerm>& terms, int64_t first, int64_t last,
                      const RowResults& to) {
  const int64_t n = terms.front().b->columns();
  thread_local std::vector<float> sums;  // reused by the next piece
  sums.resize(static_cast<size_t>((last - first) * n));
  bool add = false;
  for (const RowTerm& term : terms) {
    term.b->multiply(term.a + first * term.b->rows(), last - first, add, sums.data());
    add = true;
  }
  const std::vector<float> zeros(static_cast<size_t>(n));
  for (int64_t r = first; r < last; ++r) {
    const float* const row = sums.data() + (r - first) * n;
    const float* const bias = to.bias != nullptr ? to.bias : zeros.data();
    const float* const addend = to.addend != nullptr ? to.addend + r * n : zeros.data();
    if (to.rounded != nullptr) {
      write_row(row, to.scale, bias, addend, n, to.rounded + r * n);
    } else {
      write_row(row, to.scale, bias, addend, n, to.exact + r * n);
    }
  }
}

}  // namespace

RightMatrix::RightMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed)
    : data_(data), k_(k), n_(n), transposed_(transposed) {
  if (tile_products_work()) tiles_.emplace(data, k, n, transposed);
}

void RightMatrix::multiply(const Bf16* a, int64_t rows, bool add, float* sums) const {
  Product product;
  product.m = rows;
  product.n = n_;
  product.k = k_;
  product.transpose_b = transposed_;
  product.beta = add ? 1.0F : 0.0F;
  gemm(product, reinterpret_cast<const uint16_t*>(a), reinterpret_cast<const uint16_t*>(data_),
       sums);
}

void matmul(const std::vector<RowTerm>& terms, int64_t rows, const RowResults& results,
            const RowsDone& then) {
  const int64_t n = terms.front().b->columns();
  const bool tiled = terms.front().b->tiles() != nullptr;
  std::vector<TileTerm> tile_terms;
  for (const RowTerm& term : terms) tile_terms.push_back({term.a, term.b->tiles()});
  const int64_t per_piece = rows_per_piece(rows, n);
  // A single piece runs outside a parallel region: oneDNN brings its own threads.
  parallel_for((rows + per_piece - 1) / per_piece, true, [&](int64_t piece) {
    const int64_t first = piece * per_piece;
    const int64_t last = std::min(rows, first + per_piece);
    if (tiled) {
      tile_products(tile_terms, first, last, results);
    } else {
      products_by_gemm(terms, first, last, results);
    }
    if (then) then(first, last);
  });
}

}  // namespace rondo::kernels
