// Internals shared by the attention kernels: how a problem is split into tiles and work items,
// which tiles a mask hides, and per-thread scratch memory. Not for use elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "rondo/kernels/attention.h"

namespace rondo::kernels {

// Queries and keys per tile. The scores of a tile and the packed keys and values it uses fit in the
// L1 cache together.
constexpr int64_t kTile = 64;

constexpr int64_t tiles_in(int64_t count) { return (count + kTile - 1) / kTile; }

enum class View : uint8_t { hidden, mixed, whole };

// What each tile sees under the problem's mask, computed once for all heads.
class TileViews {
 public:
  TileViews(const AttentionProblem& problem, int threads);

  View at(int64_t b, int64_t query_tile, int64_t key_tile) const {
    if (views_.empty()) return View::whole;
    return views_[static_cast<size_t>(b * batch_step_ + query_tile * row_step_ + key_tile)];
  }

 private:
  std::vector<View> views_;  // [B or 1, query tiles or 1, key tiles]; empty without a mask
  int64_t batch_step_ = 0;
  int64_t row_step_ = 0;
};

// Query tiles [first, last) of head h of batch entry b, against all keys.
struct ForwardWork {
  const AttentionProblem* problem = nullptr;
  const TileViews* views = nullptr;
  Sink out;
  float* lse = nullptr;
  int64_t b = 0;
  int64_t h = 0;
  int64_t first = 0;
  int64_t last = 0;
};

// All of head h of batch entry b.
struct BackwardWork {
  const AttentionProblem* problem = nullptr;
  const TileViews* views = nullptr;
  const AttentionResult* result = nullptr;
  const AttentionGradients* gradients = nullptr;
  float* bias_sum = nullptr;       // [Tq, Tk], accumulated into; may be null
  double* factor_share = nullptr;  // written; may be null
  int64_t b = 0;
  int64_t h = 0;
};

// How bf16 values are multiplied: widened to fp32, in pairs (AVX-512 BF16), or in tiles (AMX).
enum class Bf16Products { none, vectors, tiles };

// The kernels compiled for one target and element type.
struct AttentionKernels {
  void (*forward)(const ForwardWork& work);
  void (*backward)(const BackwardWork& work);
};
const AttentionKernels& attention_kernels(Element element);

// Rows of fp32 scratch are padded to multiples of the widest vector.
constexpr int64_t kPadding = 16;
constexpr int64_t padded(int64_t count) { return (count + kPadding - 1) / kPadding * kPadding; }

// Carves buffers out of one block of memory; without a block it only counts.
class Carver {
 public:
  explicit Carver(float* memory = nullptr) : memory_(memory) {}
  float* take(int64_t floats) {
    float* part = memory_ == nullptr ? nullptr : memory_ + taken_;
    taken_ += padded(floats);
    return part;
  }
  int64_t taken() const { return taken_; }

 private:
  float* memory_;
  int64_t taken_ = 0;
};

// This thread's scratch memory, kept between calls because faulting in fresh pages would cost more
// than a small problem. Memory that only long sequences need is released.
class Scratch {
 public:
  explicit Scratch(int64_t floats);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* memory() const { return memory_; }

 private:
  float* memory_;
};

template <class T>
const T* row_of(const Source& source, int64_t b, int64_t h, int64_t row) {
  const Strides& s = source.strides;
  return static_cast<const T*>(source.data) + b * s.batch + h * s.head + row * s.row;
}

template <class T>
T* row_of(const Sink& sink, int64_t b, int64_t h, int64_t row) {
  const Strides& s = sink.strides;
  return static_cast<T*>(sink.data) + b * s.batch + h * s.head + row * s.row;
}

}  // namespace rondo::kernels
