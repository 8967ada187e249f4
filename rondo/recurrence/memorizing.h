// Memorizing Transformer (Wu et al. 2022), a baseline: a window-attention layer that also attends
// to the k nearest of its own last M (key, value) pairs, without gradients, mixed per head by a
// learned gate.
//
// The memory holds whole blocks: a token retrieves pairs from the blocks before its own. With
// segments of one block this is the authors' order (search, then store); it also makes results
// independent of how a document is split into calls.
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
    Tensor filled;        // number of valid pairs of each row, which come last [B]
  };
  // Of queries of one block, the first of which is `phase` tokens into it.
  Tensor recall(const Tensor& queries, const Memory& memory, int64_t phase,
                const Scope& scope) const;
  Memory store(const Memory& memory, const Tensor& keys, const Tensor& values) const;

  int64_t memory_size_;
  int64_t neighbors_;
  Tensor gate_;  // [H]
};

}  // namespace rondo
