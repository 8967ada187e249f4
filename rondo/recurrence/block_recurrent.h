// Block-Recurrent Transformer (Hutchins et al. 2022): a window-attention layer whose tokens also
// attend to S state vectors, and a cell that updates the states once per block of W tokens.
//
// Vertical (tokens): window attention ∥ attention to the states, ordinary residual and
// feed-forward. Horizontal (states): self-attention ∥ attention to the 2W keys of the previous and
// current block, then gates instead of residuals. Tokens of a block read the state from before the
// block.
#pragma once

#include "rondo/config/time_config.h"
#include "rondo/recurrence/compiled_block_recurrent.h"
#include "rondo/recurrence/window.h"

namespace rondo {

// How many of `new_tokens` tokens that follow `tokens_seen` earlier ones fall in each block of
// `window`.
Shape tokens_by_block(int64_t tokens_seen, int64_t window, int64_t new_tokens);

// The transformer layer of the states.
class RecurrentCell : public nn::Module {
 public:
  RecurrentCell(const TimeConfig& time, const nn::AttentionShape& shape, int64_t hidden);

  // Projections of a state c [B, S, D]: keys and values that tokens and the cell read, and the
  // cell's queries. [B, H, S, d]
  struct Read {
    Tensor keys, values;
    Tensor queries, token_queries;
  };
  Read read(const Tensor& c, const Scope& scope) const;
  // The state after a block, given the keys and values of it and its predecessor, [B, H, 2W, d].
  Tensor update(const Tensor& c, const Read& read, const Tensor& keys, const Tensor& values,
                const Scope& scope) const;
  CompiledCell compile(nn::WeightPacker& packer) const;

 private:
  Tensor feed(const Tensor& input, const Tensor& c, const Scope& scope) const;
  Tensor squash(const Tensor& z) const { return tanh_ ? at::tanh(z) : z; }
  Tensor for_scores(const Tensor& heads) const {
    return normalize_ ? WindowAttention::unit_length(heads) : heads;
  }

  std::string configuration_;
  bool tanh_ = false;
  bool normalize_ = true;
  int64_t heads_ = 0;
  std::shared_ptr<nn::Norm> norm_, feed_forward_norm_;
  Tensor identity_;  // state IDs [S, D], added after the norm; undefined without
  std::shared_ptr<nn::Projections> projections_;
  std::shared_ptr<nn::Linear> token_query_, up_, down_;
  Tensor scale_, token_scale_;  // [H]
  std::shared_ptr<nn::Gate> attention_gate_, feed_forward_gate_;
};

class BlockRecurrentAttention : public WindowAttention {
 public:
  // `readers`: its own level or, with feedback, all levels.
  BlockRecurrentAttention(const WindowOptions& options, const TimeConfig& time, int64_t hidden,
                          StateReaders readers = StateReaders::level);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  void describe_state(int64_t level, const StatePlace& place, StateLayout& layout) const override;
  void reset_state(int64_t level, const Tensor& fresh, State& state) const override;
  int64_t block() const override { return options().window; }
  StateReaders state_readers() const override { return readers_; }
  StateKeys read_states(int64_t level, int64_t rows, const ForwardContext& context,
                        const Scope& scope) const override;
  std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const override;

 private:
  // The state of `rows` rows at `level`; the learned initial state if none is carried. [B, S, D]
  Tensor state(int64_t rows, int64_t level, const ForwardContext& context) const;
  RecurrentCell::Read read(const Tensor& c, const ForwardContext& context,
                           const Scope& scope) const;

  StateReaders readers_;
  std::shared_ptr<RecurrentCell> cell_;
  Tensor initial_;  // learned [S, D]
};

}  // namespace rondo
