// Position encodings: fixed sinusoids, fairseq's variant, and T5's relative bias.
#pragma once

#include "rondo/nn/module.h"

namespace rondo::nn {

// Row p: dim i even sin(p / 10000^(i/D)), dim i+1 cos of the same. [T, D], for positions from
// `first`.
Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t width,
                            const at::TensorOptions& options);

// fairseq's variant: all sines, then all cosines, rates 10000^(-j / (D/2 - 1)); `positions` are any
// int64 values [B, T] (fairseq numbers tokens from padding + 1). → [B, T, D]
Tensor split_sinusoidal_positions(const Tensor& positions, int64_t width,
                                  const at::TensorOptions& options);

// T5's bucket of a distance n ≥ 0 into the past: exact below 16, then logarithmic up to 128; 32
// buckets in total. int64 in, int64 out.
Tensor relative_buckets(const Tensor& distance);

constexpr int64_t kRelativeBuckets = 32;
constexpr int64_t kRelativeDistances = 128;  // all distances from here on share the last bucket

// T5's learned bias per head and bucket. Parameter: table [H, 32].
class RelativeBias : public Module {
 public:
  explicit RelativeBias(int64_t heads);
  // Bias of query i for key j of a tile whose query i is at key position reach + i. Keys ahead of
  // their query get the bias of distance 0 (callers mask them). [H, Tq, Tk], multiplied by `scale`
  // [H] if defined.
  Tensor tile(int64_t queries, int64_t keys, int64_t reach, const Tensor& scale = {}) const;

 private:
  Tensor table_;
};

}  // namespace rondo::nn
