// Parts with weights as inference runs them, one token of each of a few rows at a time: weights
// packed once, rows of plain memory, no torch operations. Every part of nn/layers.h compiles itself
// into one of these. They are immutable and may be read by any number of threads; the WeightPacker
// that made them owns their memory and must outlive them.
//
// Work on rows is done by the members of a team together (kernels::Member). What weighs, products
// with weights, is shared out by columns; what is cheap each member does for itself. A row has the
// same bits whatever the number of rows and members.
#pragma once

#include "rondo/kernels/int8.h"
#include "rondo/kernels/packed.h"
#include "rondo/kernels/team.h"
#include "rondo/nn/ops.h"

namespace rondo::nn {

// Rows in memory of somebody else's.
struct Rows {
  float* data = nullptr;
  int64_t count = 0;
  int64_t stride = 0;
  float* operator[](int64_t row) const { return data + row * stride; }
  // `number` of them, from `first` on.
  Rows part(int64_t first, int64_t number) const { return {(*this)[first], number, stride}; }
};

// Memory of rows, filled up with zeros to whole panels as products want it.
class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(RowBuffer&&) noexcept = default;
  RowBuffer& operator=(RowBuffer&&) noexcept = default;
  // Keeps what it has where that is enough. Always for the same width: a wider one moves rows
  // apart, and there is no longer room for as many as before.
  void resize(int64_t rows, int64_t width);
  Rows rows(int64_t count) { return {begin_, count, stride_}; }

 private:
  std::vector<float> data_;
  float* begin_ = nullptr;  // the first whole line of the cache in it
  int64_t stride_ = 0;
};

// y = x Wᵀ + b.
struct CompiledLinear {
  kernels::PackedMatrix w;  // out 0: there is none
  const float* bias = nullptr;
  const kernels::Int8Matrix* int8 = nullptr;  // in place of w's numbers: inputs are rounded too

  bool there() const { return w.out > 0; }
  // Columns of each of so many members begin at multiples of this.
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
  // All of it; `low`: scratch of `rank` numbers a row.
  void forward(const Rows& x, const Rows& low, const Rows& y) const;
  int64_t rank() const { return down.out; }
};

struct CompiledFeedForward {
  CompiledLinear up, down;
  Activation activation = Activation::relu;

  // The member's columns of act(up · u + inner); `inner` has no rows where nothing joins.
  void hidden(const Rows& u, const Rows& inner, const Rows& h, const kernels::Member& member) const;
};

// Packs weights and owns the memory.
class WeightPacker {
 public:
  // `int8_inputs`: linear maps multiply 8-bit weights with inputs that are rounded to 8 bits, row
  // by row; everything else is as the format says.
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
  std::vector<Tensor> kept_;  // whose memory vector() showed
};

}  // namespace rondo::nn
