// Sums of columns.
#include "rondo/kernels/column_sums.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

[[maybe_unused]] constexpr int64_t kWorthSumThreads = 1 << 14;  // entries
constexpr int64_t kMostPieces = 64;
constexpr int64_t kFewestRows = 16;  // of a piece

template <class Number>
RONDO_INLINE void add_row_to(const Number* __restrict x, int64_t width, float* __restrict sums) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) sums[i] += widen(x[i]);
}

// The compiler clones functions, not templates.
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
  const int64_t per_piece = std::max(kFewestRows, (rows + kMostPieces - 1) / kMostPieces);
  const int64_t pieces = (rows + per_piece - 1) / per_piece;
  std::vector<float> parts(static_cast<size_t>(pieces * width));  // [pieces, width]
#pragma omp parallel for schedule(static) if (rows * width > kWorthSumThreads)
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t first = p * per_piece;
    sum_rows(x + first * width, std::min(per_piece, rows - first), width, parts.data() + p * width);
  }
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0.0;
    for (int64_t p = 0; p < pieces; ++p) {
      sum += static_cast<double>(parts[static_cast<size_t>(p * width + i)]);
    }
    sums[i] = static_cast<float>(sum);
  }
}

template void column_sums(const float*, int64_t, int64_t, float*);
template void column_sums(const Bf16*, int64_t, int64_t, float*);

}  // namespace rondo::kernels
