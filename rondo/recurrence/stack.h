// Executes a DepthPlan: for every level, token mixing, cross-attention if any, and feed-forward,
// each with its norm and residual, taken from the banks at the indices the level names. The same
// code runs post-norm and pre-norm networks, with or without signals:
//
//   pre:   x = x ⊕ mix(norm(x));           u = x + g_F(x);  x = x ⊕ ffn(norm(u))
//   post:  x = norm(x ⊕ mix(x));           u = x + g_F(x);  x = norm(x ⊕ ffn(u))
//
// where ⊕ is + or, with learnable coefficients, identity·x + branch·f, and signals see the raw x.
// Sums are deferred to the next norm, which does both in one pass over memory.
#pragma once

#include <functional>

#include "rondo/config/depth_plan.h"
#include "rondo/recurrence/compiled_sequence.h"
#include "rondo/recurrence/self_attention.h"

namespace rondo {

enum class NormPlacement { pre, post };

// The residual stream between sub-layers: a sum that its next consumer, usually a norm, computes.
using Stream = nn::WeightedSum;

struct StackOptions {
  int64_t width = 0;
  NormPlacement placement = NormPlacement::pre;
  nn::NormKind norm = nn::NormKind::layer;
  double norm_epsilon = 1e-5;
  nn::FeedForwardShape feed_forward;
  nn::LinearInit feed_forward_up;
  nn::LinearInit feed_forward_down;
  // Dropout of a sub-layer's output before it joins the stream.
  double mixing_dropout = 0.0;
  double feed_forward_dropout = 0.0;
  // For plans with signals: total width of the heads, i.e. of queries, keys and values.
  int64_t inner = 0;
  RingConfig ring;
  RecursiveConfig recursive;
};

class Stack : public nn::Module {
 public:
  using MakeMixing = std::function<std::shared_ptr<TokenMixing>(int64_t index)>;

  // `make_mixing` is called for every token mixing in the plan; `cross` is used if the plan has
  // cross-attention.
  Stack(const StackOptions& options, DepthPlan plan, const MakeMixing& make_mixing,
        const nn::AttentionShape& cross = {});

  // x [B, T, D] through all levels.
  Tensor forward(Tensor x, ForwardContext& context, const Scope& scope);
  // Through `plan` instead, which must use only weights this stack has.
  Tensor forward_plan(const DepthPlan& plan, Tensor x, ForwardContext& context, const Scope& scope);

  // For decoding token by token.
  struct CompileOptions {
    // Post-norm stacks: fold signals into per-level copies of the maps. Fewest operations.
    bool fold_signals = false;
  };
  CompiledStack compile(nn::WeightPacker& packer, const CompileOptions& options) const;
  // For whole sequences; cross-attention is not supported.
  CompiledSequenceStack compile_sequences(nn::WeightPacker& packer, bool fold_signals) const;

  // The state of a language model (recurrence/mixing.h), over all levels.
  void describe_state(const StatePlace& place, StateLayout& layout) const;
  void reset_state(const Tensor& fresh, State& state) const;
  int64_t block() const;  // 0: no level has blocks
  bool has_states() const;
  // The level whose recurrent states all levels read; kNone: each level reads its own.
  int64_t feedback_level() const;

  // Training: keep only every n-th level's input and recompute the rest in the backward pass;
  // 0 = keep all. Stacks with cross-attention keep all: the gradient of the memory would be lost.
  void recompute_every(int64_t levels) { recompute_every_ = levels; }

  const DepthPlan& plan() const { return plan_; }
  TokenMixing& mixing_of(int64_t level) const {
    return (*mixings_)[plan_.levels.at(static_cast<size_t>(level)).mixing];
  }
  const nn::Bank<CrossAttention>& crosses() const { return *crosses_; }

 private:
  // Levels [first, last) of `plan`.
  Tensor forward_range(const DepthPlan& plan, int64_t first, int64_t last, Tensor x,
                       ForwardContext& context, const Scope& scope);
  Tensor forward_recomputing(const DepthPlan& plan, Tensor x, ForwardContext& context,
                             const Scope& scope);
  Stream forward_level(const Level& level, int64_t number, Stream stream, ForwardContext& context,
                       const Scope& scope);
  Stream forward_mixing(const Level& level, int64_t number, const Stream& stream,
                        ForwardContext& context, const Scope& scope);
  Stream forward_cross(const Level& level, const Stream& stream, ForwardContext& context,
                       const Scope& scope);
  Stream forward_feed_forward(const Level& level, const Stream& stream, const Scope& scope);
  // Sub-layers of a level in order; feed-forward comes last.
  static constexpr int64_t kMixingSublayer = 0;
  static constexpr int64_t kCrossSublayer = 1;
  static int64_t feed_forward_sublayer(const Level& level) { return level.cross == kNone ? 1 : 2; }

  void compile_parts(nn::WeightPacker& packer, CompiledLevels& stack) const;
  CompiledLevel compile_level(const Level& level, nn::WeightPacker& packer,
                              CompiledLevels& stack) const;
  // Whether the level's signals can be folded. Not pre-norm: signals and maps have different
  // inputs there.
  bool folds(const Level& level) const;
  void fold_level(const Level& level, nn::WeightPacker& packer, CompiledLevel& l,
                  CompiledLevels& stack) const;
  // The stream and the input of a sub-layer.
  nn::NormedSum norm_before(int64_t norm, const Stream& stream, const Scope& scope) const;
  // Adds a branch to the stream and, post-norm, normalizes.
  Stream join(const Level& level, int64_t sublayer, int64_t norm, const Tensor& x,
              const Tensor& branch, const Scope& scope) const;

  StackOptions options_;
  DepthPlan plan_;
  int64_t recompute_every_ = 0;
  std::shared_ptr<nn::Bank<TokenMixing>> mixings_;
  std::shared_ptr<nn::Bank<CrossAttention>> crosses_;
  std::shared_ptr<nn::Bank<nn::FeedForward>> feed_forwards_;
  std::shared_ptr<nn::Bank<nn::Norm>> norms_;
  std::shared_ptr<nn::Bank<LevelSignals>> signals_;
  std::shared_ptr<nn::Bank<ResidualCoefficients>> residuals_;
  std::shared_ptr<nn::Bank<LoopProjection>> projections_;
};

}  // namespace rondo
