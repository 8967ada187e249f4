// Position codes: fixed sinusoids, fairseq's variant of them, and T5's relative bias.
#pragma once

#include "rondo/nn/module.h"

namespace rondo::nn {

// Row p: dim i even sin(p / 10000^(i/D)), dim i+1 cos of the same. [T, D], for positions first … .
Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t width,
                            const at::TensorOptions& options);

// fairseq's: sines of all frequencies, then cosines, rates 10000^(-j / (D/2 - 1)); `positions` are
// any int64 numbers [B, T] (it numbers tokens from padding + 1). → [B, T, D]
Tensor split_sinusoidal_positions(const Tensor& positions, int64_t width,
                                  const at::TensorOptions& options);

// T5's bucket of a distance n ≥ 0 into the past: exact below 16, then logarithmic up to 128; 32 in
// all. int64 in, int64 out.
Tensor relative_buckets(const Tensor& distance);

constexpr int64_t kRelativeBuckets = 32;
constexpr int64_t kRelativeDistances = 128;  // from there on all distances are in the last bucket

// T5's learned bias per head and bucket. Parameter: table [H, 32].
class RelativeBias : public Module {
 public:
  explicit RelativeBias(int64_t heads);
  // Bias of query i for key j of a tile whose query i stands at key place reach + i. Keys ahead of
  // their query get the bias of distance 0 (and are masked by whoever uses this). [H, Tq, Tk]
  // Multiplied by `scale` [H] if that is defined.
  Tensor tile(int64_t queries, int64_t keys, int64_t reach, const Tensor& scale = {}) const;

 private:
  Tensor table_;
};

}  // namespace rondo::nn
