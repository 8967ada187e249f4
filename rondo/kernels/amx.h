// bf16 products by the CPU's tile registers (AMX), all of them: 32 × 32 sums in registers. Those of
// layers have their right matrix packed once into tiles, and are about twice as fast as oneDNN's
// gemm, because fp32 sums need not go through memory. No torch here.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// Whether this CPU has tiles, and the kernel lets this process use them: their 8 KiB of state are
// saved only for those that asked, which the first call does.
bool cpu_has_tiles();
// Must run before oneDNN's first use in the process: asks too, and keeps oneDNN from tiles if they
// are refused (it would die of it).
void prepare_tiles();

// Whether there are tiles and they may be used, in the whole process; the latter is for tests and
// comparisons. All below needs it to be true.
bool tile_products_work();
void allow_tile_products(bool allow);

// While one lives, this thread's eight tile registers have 16 rows of 64 bytes each.
struct OpenTiles {
  OpenTiles();
  ~OpenTiles();
  OpenTiles(const OpenTiles&) = delete;
  OpenTiles& operator=(const OpenTiles&) = delete;
};

// Pairs of bf16 numbers, `step` pairs (or sums) between rows.
struct PairRows {
  const float* data = nullptr;
  int64_t step = 0;
};
// to [rows, columns] (+)= left [rows, count] · right [count, columns], rows, columns and count up
// to multiples of 16, for which there must be memory. Tiles must be open.
void multiply_pairs(PairRows left, const PairRows& right, int64_t rows, int64_t columns,
                    int64_t count, bool add, float* to, int64_t to_step);

// Numbers on whole cache lines, not set to anything.
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

// A right matrix [k, n] as tiles, ready for many products. Both sides are filled up with zeros to
// multiples of 32.
class TiledMatrix {
 public:
  // `transposed`: lies in memory as [n, k].
  TiledMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed);
  int64_t rows() const { return k_; }
  int64_t columns() const { return n_; }
  int64_t steps() const { return (k_ + 31) / 32; }
  // Two tiles for every step of 32 along k, for columns [32 · panel, 32 · panel + 32).
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

// Where scale · sums [rows, n] + bias [n] + addend [rows, n] go: rounded, or exact.
struct RowResults {
  Bf16* rounded = nullptr;
  float* exact = nullptr;
  const float* bias = nullptr;    // may be null
  const float* addend = nullptr;  // may be null, and may be `exact`
  float scale = 1.0F;
};

// Rows [first, last) of the sum of all terms, which have the same number of columns, by the calling
// thread alone.
void tile_products(const std::vector<TileTerm>& terms, int64_t first, int64_t last,
                   const RowResults& results);

// c [n, k] = scale · Σ over rows of aᵀ b (+ c, if `add`), with a [rows, n] and b [rows, k]: what
// the gradient of a weight is.
struct WeightGradientShape {
  int64_t rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  float scale = 1.0F;
  bool add = false;
};
// By all threads.
void tile_weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c);

}  // namespace rondo::kernels
