// Column sums.
#include "rondo/kernels/column_sums.h"

#include <vector>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

template <class Number>
RONDO_INLINE void add_row_to(const Number* __restrict x, int64_t width, float* __restrict sums) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) sums[i] += widen(x[i]);
}

// The compiler clones functions but not templates.
#define RONDO_SUM_ROWS(Number)                                                 \
  RONDO_CLONES                                                                 \
  void sum_rows(const Number* x, int64_t rows, int64_t width, float* sums) {   \
    for (int64_t r = 0; r < rows; ++r) add_row_to(x + r * width, width, sums); \
  }
RONDO_SUM_ROWS(float)
RONDO_SUM_ROWS(Bf16)
#undef RONDO_SUM_ROWS

}  // namespace

template <class Number>
void column_sums(const Number* x, int64_t rows, int64_t width, float* sums) {
  const RowPieces pieces(rows);
  std::vector<float> parts(static_cast<size_t>(pieces.count * width));  // [pieces, width]
  parallel_for(pieces.count, rows * width > kWorthRowThreads, [&](int64_t p) {
    sum_rows(x + pieces.first(p) * width, pieces.last(p) - pieces.first(p), width,
             parts.data() + p * width);
  });
  add_pieces(parts.data(), pieces.count, width, width, sums);
}

template void column_sums(const float*, int64_t, int64_t, float*);
template void column_sums(const Bf16*, int64_t, int64_t, float*);

}  // namespace rondo::kernels
