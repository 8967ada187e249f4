// Weights packed for token-by-token decoding, which is bound by memory bandwidth: each weight is
// read once, in order, as fp32, bf16 or int8, and multiplied in fp32. No torch dependency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rondo::kernels {

enum class PackedFormat { fp32, bf16, int8 };

// Memory for weights in the largest pages the system offers: with small pages, address translation
// takes longer than reading (measured: twice).
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

// Rows are stored in panels of this many, with the values of one column adjacent: a panel's sums
// stay in registers during one pass over x.
constexpr int64_t kPanel = 16;
// Columns are padded to a multiple of this.
constexpr int64_t kColumnStep = 8;

constexpr int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// w [out, in]; the arena owns the memory.
struct PackedMatrix {
  PackedFormat format = PackedFormat::fp32;
  int64_t out = 0;
  int64_t in = 0;
  // [panels, columns, 16]; bf16: [panels, columns / 2, 16, 2]
  const void* data = nullptr;
  const float* scale = nullptr;  // int8: per row [panels · 16], 0 after the last

  int64_t panels() const { return (out + kPanel - 1) / kPanel; }
  int64_t columns() const { return round_up(in, kColumnStep); }
  bool scaled() const { return format == PackedFormat::int8; }
  size_t bytes() const;
};
PackedMatrix pack(const float* w, int64_t out, int64_t in, PackedFormat format, PageArena& arena);
// The same into the caller's memory: zeroed, 64-byte aligned, bytes() of the matrix.
PackedMatrix shape_packed(int64_t out, int64_t in, PackedFormat format);
void pack_into(const float* w, void* memory, PackedMatrix& matrix);

// y[o] = Σ_i w[o, i] · x[i] for the rows of panels [first, last). x is read up to columns(), where
// it must hold zeros; y is written up to panels() · 16, with zeros after the last row.
void matvec(const PackedMatrix& w, const float* x, int64_t first, int64_t last, float* y);

// y = (x - mean) / √(variance + ε) · weight + bias; without a bias, x / √(mean of x² + ε) · weight.
// y may be x.
void norm_one(const float* x, const float* weight, const float* bias, float epsilon, int64_t width,
              float* y);

// to = a · x + b · y; `to` may be x or y.
void sum_one(const float* x, float a, const float* y, float b, int64_t width, float* to);

// x / √(Σx² + ε), in place.
void normalize_one(float* x, int64_t width, float epsilon);

// x = max(x, 0), x · Φ(x) or tanh(x), in place.
void relu_one(float* x, int64_t count);
void gelu_one(float* x, int64_t count);
void tanh_one(float* x, int64_t count);

// Gates of a recurrent state c, in place: c · keep + z · (1 - keep), and, from gate logits,
// c · σ(forget) + z · σ(input).
void fixed_gate_one(const float* z, const float* keep, int64_t width, float* c);
void lstm_gate_one(const float* z, const float* forget, const float* input, int64_t width,
                   float* c);

}  // namespace rondo::kernels
