// Modules compiled for inference, one token of each of a few rows at a time: weights packed once,
// rows in plain memory, no torch operations. Every module of nn/layers.h compiles into one of
// these. They are immutable and may be used by any number of threads; the WeightPacker that made
// them owns their memory and must outlive them.
//
// The members of a team process rows together (kernels::Member). Expensive work, multiplication by
// weights, is split by columns; cheap work is repeated by each member. The bits of a row do not
// depend on the number of rows or members.
#pragma once

#include "rondo/kernels/int8.h"
#include "rondo/kernels/packed.h"
#include "rondo/kernels/team.h"
#include "rondo/nn/ops.h"

namespace rondo::nn {

// Non-owning view of rows.
struct Rows {
  float* data = nullptr;
  int64_t count = 0;
  int64_t stride = 0;
  float* operator[](int64_t row) const { return data + row * stride; }
  // `number` rows starting at `first`.
  Rows part(int64_t first, int64_t number) const { return {(*this)[first], number, stride}; }
};

// Memory for rows, zero-padded to whole panels as matmuls require.
class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(RowBuffer&&) noexcept = default;
  RowBuffer& operator=(RowBuffer&&) noexcept = default;
  // Keeps its memory if large enough. Always use the same width: a larger one moves rows apart,
  // leaving room for fewer rows.
  void resize(int64_t rows, int64_t width);
  Rows rows(int64_t count) { return {begin_, count, stride_}; }

 private:
  std::vector<float> data_;
  float* begin_ = nullptr;  // first cache line boundary in data_
  int64_t stride_ = 0;
};

// y = x Wᵀ + b.
struct CompiledLinear {
  kernels::PackedMatrix w;  // out 0: absent
  const float* bias = nullptr;
  const kernels::Int8Matrix* int8 = nullptr;  // replaces w's values: inputs are quantized too

  bool there() const { return w.out > 0; }
  // Each member's columns begin at a multiple of this.
  int64_t column_step(int members) const;
  // The member's columns [first, last).
  std::pair<int64_t, int64_t> columns(const kernels::Member& member) const;
  void forward(const Rows& x, const Rows& y, const kernels::Member& member) const;
};

struct CompiledNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;  // null: RMS norm
  float epsilon = 0.0F;
  int64_t width = 0;

  void forward(const Rows& x, const Rows& y) const;
};

// g(x) = up · (down · x); a full matrix has no `down`.
struct CompiledLowRank {
  kernels::PackedMatrix down, up;

  bool there() const { return up.out > 0; }
  // Computes all columns; `low`: scratch of `rank` values per row.
  void forward(const Rows& x, const Rows& low, const Rows& y) const;
  int64_t rank() const { return down.out; }
};

struct CompiledFeedForward {
  CompiledLinear up, down;
  Activation activation = Activation::relu;

  // The member's columns of act(up · u + inner); `inner` has no rows if nothing is added.
  void hidden(const Rows& u, const Rows& inner, const Rows& h, const kernels::Member& member) const;
};

// Packs weights and owns the memory.
class WeightPacker {
 public:
  // `int8_inputs`: linear maps multiply int8 weights by inputs quantized to int8, row by row;
  // everything else follows the format.
  explicit WeightPacker(kernels::PackedFormat format, bool int8_inputs = false)
      : format_(format), int8_inputs_(int8_inputs) {}
  WeightPacker(const WeightPacker&) = delete;
  WeightPacker& operator=(const WeightPacker&) = delete;

  CompiledLinear linear(const Tensor& w, const Tensor& bias);  // [out, in], [out] or undefined
  kernels::PackedMatrix matrix(const Tensor& w);               // [out, in]
  const float* vector(const Tensor& v);                        // undefined: null
  kernels::PackedFormat format() const { return format_; }
  // Of packed matrices: what one step reads.
  size_t bytes() const { return arena_.bytes(); }

 private:
  kernels::PackedFormat format_;
  bool int8_inputs_;
  kernels::PageArena arena_;
  std::vector<std::unique_ptr<kernels::Int8Matrix>> int8_;
  std::vector<Tensor> kept_;  // owns the memory returned by vector()
};

}  // namespace rondo::nn
