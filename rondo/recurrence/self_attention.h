// Token mixing over a whole sequence: ordinary self-attention, sliced into groups where a level
// says so, causal with a growing cache where a state is carried; and the Mixer's transposed
// feed-forward.
#pragma once

#include "rondo/recurrence/mixing.h"

namespace rondo {

struct SelfAttentionOptions {
  nn::AttentionShape shape;
  bool causal = false;
  std::string permutation = "P+I-L";
};

class SelfAttention : public TokenMixing {
 public:
  explicit SelfAttention(const SelfAttentionOptions& options);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const override;
  std::shared_ptr<const SequenceMixing> compile_sequences(nn::WeightPacker& packer) const override;
  const nn::Projections* projections() const override { return projections_.get(); }

 private:
  // Puts the cached keys and values of earlier calls in front and keeps all for the next.
  static void extend(Tensor& k, Tensor& v, int64_t level, State& state);

  SelfAttentionOptions options_;
  std::shared_ptr<nn::Projections> projections_;
};

// Attention of the stream to context.memory. Keys and values of the memory are made once per set of
// weights and context, however many levels use it, and are kept in the state for later calls.
class CrossAttention : public nn::Module {
 public:
  explicit CrossAttention(const nn::AttentionShape& shape);
  // `index`: number of these weights, under which keys and values are kept.
  Tensor forward(const Tensor& u, int64_t index, ForwardContext& context, const Scope& scope);

  nn::CompiledProjections compile(nn::WeightPacker& packer) const {
    return projections_->compile(packer);
  }
  // Of each row of memory [B, S, D], whose first lengths[b] tokens are real: what decoding reads.
  std::vector<std::shared_ptr<const CrossMemory>> memories(
      const Tensor& memory, const std::vector<int64_t>& lengths) const;

 private:
  nn::AttentionShape shape_;
  std::shared_ptr<nn::Projections> projections_;
};

// MLP-Mixer: a feed-forward over the token axis, the same for every channel. Weights fix T.
class TokenFeedForward : public TokenMixing {
 public:
  TokenFeedForward(int64_t tokens, int64_t hidden);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  std::shared_ptr<const SequenceMixing> compile_sequences(nn::WeightPacker& packer) const override;

 private:
  std::shared_ptr<nn::FeedForward> feed_forward_;
};

}  // namespace rondo
