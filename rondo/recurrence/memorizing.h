// Memorizing Transformer (Wu et al. 2022), the baseline: a window-attention layer that also attends
// to the k nearest of the last M (key, value) pairs it has made itself, outside the gradient, mixed
// per head by a learned gate.
//
// The memory holds whole blocks: a token finds the pairs of the blocks before its own. With
// segments of one block that is the authors' order (search, then store), and it makes the answer
// independent of how a document is cut into calls.
#pragma once

#include "rondo/recurrence/window.h"

namespace rondo {

class MemorizingAttention : public WindowAttention {
 public:
  MemorizingAttention(const WindowOptions& options, int64_t memory, int64_t neighbors);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  void describe_state(int64_t level, const StatePlace& place, StateLayout& layout) const override;
  int64_t block() const override { return options().window; }
  std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const override;

 private:
  struct Memory {
    Tensor keys, values;  // [B, M' ≤ M, H, d]
    Tensor filled;        // pairs each row really has, the newest at the end [B]
  };
  Tensor recall(const Tensor& queries, const Memory& memory, const Scope& scope) const;
  Memory store(const Memory& memory, const Tensor& keys, const Tensor& values) const;

  int64_t memory_size_;
  int64_t neighbors_;
  Tensor gate_;  // [H]
};

}  // namespace rondo
