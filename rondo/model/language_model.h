// A language model over endless documents: embedding, a stack of window-attention levels (with
// recurrent states, feedback or a memory, as [model.time] says), tied output. Any scheme of sharing
// over depth combines with any kind of time.
#pragma once

#include "rondo/model/network.h"
#include "rondo/recurrence/stack.h"

namespace rondo {

class LanguageModel : public Network {
 public:
  explicit LanguageModel(const LanguageModelConfig& config);

  NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) override;
  Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const override;
  NamedTensors example(int64_t tokens) const override;
  std::map<std::string, Stack*> stacks() const override { return {{"stack", stack_.get()}}; }

  // tokens [B, N] → logits [B, N, V]. Reads `state` and replaces it by the state after the last
  // token, cut off from the gradient. Any N: a document may be read whole, in pieces or token by
  // token with the same result. Rows marked by State::reset() begin a new document; unless all rows
  // do, that is possible only between blocks of W tokens.
  // `zero_states`: tokens read zeros in place of recurrent states (to measure what those are
  // worth).
  Tensor forward_tokens(const Tensor& tokens, State& state, const Scope& scope,
                        bool zero_states = false);

  // The summed loss of the same pass against labels [B, N], without logits being held.
  LossSum loss_of_tokens(const Tensor& tokens, const Tensor& labels, State& state,
                         double smoothing = 0.0);

  // Prepares a state of `rows` rows for reading on (empty: a new document in each): refuses one of
  // another shape, and begins documents anew where State::reset() asked. → positions [B, 1].
  Tensor begin(State& state, int64_t rows) const;

  // The state in a file, of `rows` rows (0: any number), which this model is able to continue from:
  // Error{bad_input} naming the tensors that are not as the model makes them. Besides what the
  // network carries, the state of a document may hold the logits after its last token [B, V] and
  // its recent tokens (RecentTokens).
  State load_state(const std::string& path, const std::string& fingerprint, int64_t rows,
                   Verify verify = Verify::checksum) const;

  static constexpr double kNormEpsilon = 1e-6;
  const LanguageModelConfig& config() const { return config_; }
  const DepthPlan& plan() const { return plan_; }
  const Tensor& embedding() const { return embedding_; }
  const Stack& stack() const { return *stack_; }
  const nn::Norm& output_norm() const { return *norm_; }

 private:
  std::shared_ptr<TokenMixing> make_mixing(int64_t index) const;
  // What a state holds whose rows are where `state` says; refuses positions that cannot be.
  StateLayout state_layout(const State& state, int64_t rows, const std::string& source) const;
  Tensor forward_by_blocks(const Tensor& x, int64_t source, ForwardContext& context,
                           const Scope& scope);
  int64_t tokens_seen(const Tensor& position) const;
  // tokens [B, N] → the stream after all levels [B, N, D].
  Tensor read_tokens(const Tensor& tokens, State& state, const Scope& scope, bool zero_states);
  // What the head reads, the head, and its logits.
  Tensor output_rows(const Tensor& stream, const Scope& scope) const;
  nn::Head head() const;
  Tensor finish(const Tensor& stream, const Scope& scope) const;

  LanguageModelConfig config_;
  DepthPlan plan_;
  Tensor embedding_;  // [V, D]
  std::shared_ptr<Stack> stack_;
  std::shared_ptr<nn::Norm> norm_;
};

}  // namespace rondo
