// bf16 matrix multiplication with the CPU's AMX tile registers: 32 × 32 sums stay in registers. For
// layers, the right matrix is packed into tiles once; these matmuls are about twice as fast as
// oneDNN's gemm because fp32 sums do not go through memory. No torch dependency.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// Whether this CPU has AMX tiles and the kernel lets this process use them. Linux saves their 8 KiB
// of state only for processes that request it, which the first call does.
bool cpu_has_tiles();
// Must run before the process first uses oneDNN. Requests the same permission; if it is denied,
// keeps oneDNN from using tiles, which would crash it.
void prepare_tiles();

// Whether tiles are available and allowed, process-wide; allow_tile_products() is for tests and
// comparisons. Everything below requires this to be true.
bool tile_products_work();
void allow_tile_products(bool allow);

// While an instance exists, this thread's eight tile registers have 16 rows of 64 bytes each.
struct OpenTiles {
  OpenTiles();
  ~OpenTiles();
  OpenTiles(const OpenTiles&) = delete;
  OpenTiles& operator=(const OpenTiles&) = delete;
};

// Pairs of bf16 values; rows are `step` pairs (or sums) apart.
struct PairRows {
  const float* data = nullptr;
  int64_t step = 0;
};
// to [rows, columns] (+)= left [rows, count] · right [count, columns]. Processes rows, columns and
// count rounded up to multiples of 16; the memory must be that large. Tiles must be open.
void multiply_pairs(PairRows left, const PairRows& right, int64_t rows, int64_t columns,
                    int64_t count, bool add, float* to, int64_t to_step);

// Uninitialized array, aligned to cache lines.
template <class Number>
class AlignedNumbers {
 public:
  AlignedNumbers() = default;
  explicit AlignedNumbers(int64_t count)
      : data_(static_cast<Number*>(
            ::operator new (static_cast<size_t>(count) * sizeof(Number), std::align_val_t{64}))) {}
  Number* get() const { return data_.get(); }

 private:
  struct Delete {
    void operator()(Number* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<Number, Delete> data_;
};

// A right matrix [k, n] packed into tiles for repeated use, zero-padded to multiples of 32 in both
// dimensions.
class TiledMatrix {
 public:
  // `transposed`: stored as [n, k].
  TiledMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  int64_t steps() const { return (k_ + 31) / 32; }
  // Two tiles per step of 32 along k, for columns [32 · panel, 32 · panel + 32).
  const uint32_t* panel(int64_t panel) const { return tiles_.get() + panel * steps() * 512; }

 private:
  int64_t k_ = 0;
  int64_t n_ = 0;
  AlignedNumbers<uint32_t> tiles_;
};

// a [rows, k] · b.
struct TileTerm {
  const Bf16* a = nullptr;
  const TiledMatrix* b = nullptr;
};

// Destination of scale · sums [rows, n] + bias [n] + addend [rows, n]: rounded to bf16 or exact.
struct RowResults {
  Bf16* rounded = nullptr;
  float* exact = nullptr;
  const float* bias = nullptr;    // may be null
  const float* addend = nullptr;  // may be null; may alias `exact`
  float scale = 1.0F;
};

// Rows [first, last) of the sum of all terms, which must have the same number of columns. Runs on
// the calling thread only.
void tile_products(const std::vector<TileTerm>& terms, int64_t first, int64_t last,
                   const RowResults& results);

// Weight gradient: c [n, k] = scale · Σ over rows of aᵀ b (+ c, if `add`), with
// a [rows, n] and b [rows, k].
struct WeightGradientShape {
  int64_t rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  float scale = 1.0F;
  bool add = false;
};
// Uses all threads.
void tile_weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c);

}  // namespace rondo::kernels
