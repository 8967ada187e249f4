// Products of many rows with matrices, in bf16 with fp32 sums that are scaled, given a
// bias and rounded to bf16 before they leave the caches. By tile registers where the CPU has them,
// else by oneDNN's gemm. No torch here.
#pragma once

#include <functional>
#include <optional>

#include "rondo/kernels/amx.h"

namespace rondo::kernels {

// The right side [k, n] of products, made ready once for all rows. The numbers must outlive it.
class RightMatrix {
 public:
  // `transposed`: lies in memory as [n, k].
  RightMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  const TiledMatrix* tiles() const { return tiles_.has_value() ? &*tiles_ : nullptr; }
  // sums [rows, n] (+)= a [rows, k] · this, by oneDNN.
  void multiply(const Bf16* a, int64_t rows, bool add, float* sums) const;

 private:
  const Bf16* data_;
  int64_t k_, n_;
  bool transposed_;
  std::optional<TiledMatrix> tiles_;
};

// a [rows, k] · b.
struct RowTerm {
  const Bf16* a = nullptr;
  const RightMatrix* b = nullptr;
};

// Is told of rows [first, last) when their results are there, and still in the second cache. Runs
// on several threads at a time.
using RowsDone = std::function<void(int64_t first, int64_t last)>;

// The sum of all terms, which have the same number of columns; there is at least one.
void matmul(const std::vector<RowTerm>& terms, int64_t rows, const RowResults& results,
            const RowsDone& then = {});

}  // namespace rondo::kernels
