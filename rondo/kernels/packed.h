// Weights laid out for reading one token at a time, where a network is as fast as its weights come
// from memory: each is read once, in order, as fp32, bf16 or 8 bits, and multiplied in fp32. No
// torch here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

enum class PackedFormat { fp32, bf16, int8 };

// Memory for weights, in pages as large as the system has them: with small ones looking up
// addresses takes longer than reading (measured: twice).
class PageArena {
 public:
  // 64-byte aligned, zeroed, valid as long as the arena.
  void* take(size_t bytes);
  size_t bytes() const { return taken_; }

 private:
  struct Free {
    void operator()(void* pages) const;
  };
  std::vector<std::unique_ptr<void, Free>> chunks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t taken_ = 0;
};

// Rows are kept in panels of so many, the numbers of one column side by side: a panel's sums stay
// in registers while x is walked through once.
constexpr int64_t kPanel = 16;
// Columns are filled up with zeros to a multiple of this.
constexpr int64_t kColumnStep = 4;

constexpr int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// w [out, in]; the memory is the arena's.
struct PackedMatrix {
  PackedFormat format = PackedFormat::fp32;
  int64_t out = 0;
  int64_t in = 0;
  const void* data = nullptr;    // [panels, columns, 16]; bf16: [panels, columns / 2, 16, 2]
  const float* scale = nullptr;  // int8: of each row [panels · 16]

  int64_t panels() const { return (out + kPanel - 1) / kPanel; }
  int64_t columns() const { return round_up(in, kColumnStep); }
  size_t bytes() const;
};
PackedMatrix pack(const float* w, int64_t out, int64_t in, PackedFormat format, PageArena& arena);

// y[o] = Σ_i w[o, i] · x[i] for the rows of panels [first, last). x is read up to columns(), where
// it must hold finite numbers; y is written up to panels() · 16.
void matvec(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y);

// One query over `count` keys in fp32 or bf16: out = softmax((q·k_j + bias_j) · scale) · v. Without
// keys, zeros.
template <class Number>
struct OneQuery {
  const float* q = nullptr;  // [width]
  const Number* keys = nullptr;
  const Number* values = nullptr;
  int64_t stride = 0;  // from one key (and value) to the next
  int64_t count = 0;
  int64_t width = 0;
  float scale = 1.0F;
  const float* bias = nullptr;  // [count] or null
};
void attend_one(const OneQuery<float>& query, float* scores /* scratch [count] */, float* out);
void attend_one(const OneQuery<Bf16>& query, float* scores, float* out);

// y = (x - mean) / √(variance + ε) · weight + bias, or without a bias x / √(mean of x² + ε) ·
// weight.
void norm_one(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
              float* y);

// x / √(Σx² + ε), in place.
void normalise_one(float* x, int64_t width, float epsilon);

// x = max(x, 0), or x · Φ(x), in place.
void relu_one(float* x, int64_t count);
void gelu_one(float* x, int64_t count);

}  // namespace rondo::kernels
