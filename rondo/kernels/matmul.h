// Matrix multiplication of many rows in bf16; the fp32 sums are scaled, biased and rounded to bf16
// before they leave the caches. Uses AMX tiles where available, otherwise oneDNN's gemm. No torch
// dependency.
#pragma once

#include <functional>
#include <optional>

#include "rondo/kernels/amx.h"

namespace rondo::kernels {

// The right operand [k, n], prepared once for all rows. `data` must outlive it.
class RightMatrix {
 public:
  // `transposed`: stored as [n, k].
  RightMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  const TiledMatrix* tiles() const { return tiles_.has_value() ? &*tiles_ : nullptr; }
  // sums [rows, n] (+)= a [rows, k] · this, with oneDNN.
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

// Called with rows [first, last) once their results are complete and still in the L2 cache. Runs on
// several threads concurrently.
using RowsDone = std::function<void(int64_t first, int64_t last)>;

// The sum of all terms, at least one, which must have the same number of columns.
void matmul(const std::vector<RowTerm>& terms, int64_t rows, const RowResults& results,
            const RowsDone& then = {});

}  // namespace rondo::kernels
