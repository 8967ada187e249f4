// Attention over a sliding window of past tokens, with a cache of keys and values between calls
// (Transformer-XL, and the Block-Recurrent paper's Slide). Queries and keys are L2-normalized per
// head unless disabled; scores have T5's relative bias and a learned scale per head.
//
// Key j is visible to query i iff i - W <= j < i. Computed as tiles of W queries by 2W keys (the
// previous and the current block), never as a T × T matrix.
#pragma once

#include "rondo/config/model_config.h"
#include "rondo/nn/position.h"
#include "rondo/recurrence/compiled_window.h"
#include "rondo/recurrence/mixing.h"

namespace rondo {

struct WindowOptions {
  nn::AttentionShape shape;
  int64_t window = 0;             // W; 0 = none: all earlier tokens and the token itself
  bool attend_self = false;       // j <= i instead of j < i
  bool mask_empty_cache = false;  // mask the zeros that fill the cache before a document starts
  bool normalize = true;          // queries and keys of unit length
  bool reads_states = false;      // second queries for recurrent states: [self | cross] heads
  double input_dropout = 0.0;
  double attention_dropout = 0.0;
};

// Options for a language model's levels; `reads_states`: with queries for recurrent states.
WindowOptions window_options(const LanguageModelConfig& config, bool reads_states);

class WindowAttention : public TokenMixing {
 public:
  explicit WindowAttention(const WindowOptions& options);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  void describe_state(int64_t level, const StatePlace& place, StateLayout& layout) const override;

  std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const override;

  // x / sqrt(Σx² + 1e-6) over the last dimension.
  static Tensor unit_length(const Tensor& x);

 protected:
  // `count` keys and values of `level`.
  void describe_keys(int64_t level, Extent count, const StatePlace& place,
                     StateLayout& layout) const;

  // Projections of the new tokens. All [B, H, ·, d].
  struct Tokens {
    Tensor q, k, v;
    Tensor state_q;               // queries for recurrent states; undefined without reads_states
    Tensor all_keys, all_values;  // cached ones first
  };
  Tokens project(const MixingInput& in, const Scope& scope) const;
  // Queries or keys, normalized if configured.
  Tensor for_scores(const Tensor& heads) const {
    return options_.normalize ? unit_length(heads) : heads;
  }
  // Prepends the cached keys and values.
  void attach_cache(Tokens& tokens, int64_t level, const ForwardContext& context) const;
  // Window attention of all new tokens.
  Tensor attend_window(const Tokens& tokens, int64_t level, ForwardContext& context,
                       const Scope& scope) const;
  // Attention of `queries` to recurrent states.
  Tensor attend_states(const Tensor& queries, const Tensor& keys, const Tensor& values,
                       const Scope& scope) const;
  // Keeps the last `count` keys and values for the next call.
  static void keep(const Tokens& tokens, int64_t count, int64_t level, ForwardContext& context);
  Tensor output(const Tensor& heads, const Scope& scope) const;
  // Of two sets of heads, concatenated.
  Tensor output(const Tensor& heads, const Tensor& more, const Scope& scope) const;

  WindowWeights compile_weights(nn::WeightPacker& packer) const;

  const WindowOptions& options() const { return options_; }
  const Tensor& scale() const { return scale_; }

 private:
  // `bias` (scaled) is recomputed unless its shape fits.
  Tensor attend_tile(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& positions,
                     Tensor& bias, const Scope& scope) const;
  Tensor mask(int64_t queries, int64_t keys, const Tensor& positions) const;

  WindowOptions options_;
  std::shared_ptr<nn::Projections> projections_;
  std::shared_ptr<nn::Linear> state_query_;
  std::shared_ptr<nn::RelativeBias> relative_;
  Tensor scale_;        // [H]
  Tensor state_scale_;  // [H]
};

}  // namespace rondo
