// Token mixing over a whole sequence: ordinary self-attention, sliced into groups if the level asks
// for it, causal with a growing cache if a state is carried; and the Mixer's transposed
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
  // Prepends the cached keys and values of earlier calls and caches all for the next.
  static void extend(Tensor& k, Tensor& v, int64_t level, State& state);

  SelfAttentionOptions options_;
  std::shared_ptr<nn::Projections> projections_;
};

// Attention of the stream to context.memory. Keys and values of the memory are computed once per
// set of weights, however many levels use it, and kept in the state for later calls.
class CrossAttention : public nn::Module {
 public:
  explicit CrossAttention(const nn::AttentionShape& shape);
  // `index`: of these weights; keys and values are kept under it.
  Tensor forward(const Tensor& u, int64_t index, ForwardContext& context, const Scope& scope);

  nn::CompiledProjections compile(nn::WeightPacker& packer) const {
    return projections_->compile(packer);
  }
  // Keys and values for decoding, for each row of memory [B, S, D] with lengths[b] real tokens.
  std::vector<std::shared_ptr<const CrossMemory>> memories(
      const Tensor& memory, const std::vector<int64_t>& lengths) const;

 private:
  nn::AttentionShape shape_;
  std::shared_ptr<nn::Projections> projections_;
};

// MLP-Mixer: a feed-forward over the token axis, shared by all channels. The weights fix T.
class TokenFeedForward : public TokenMixing {
 public:
  TokenFeedForward(int64_t tokens, int64_t hidden);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  std::shared_ptr<const SequenceMixing> compile_sequences(nn::WeightPacker& packer) const override;

 private:
  std::shared_ptr<nn::FeedForward> feed_forward_;
};

}  // namespace rondo
