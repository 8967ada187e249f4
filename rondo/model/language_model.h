// A language model for documents of unlimited length: embedding, a stack of window-attention levels
// (with recurrent states, feedback or a memory, by [model.time]), tied output. Any depth scheme
// combines with any kind of time.
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

  // tokens [B, N] → logits [B, N, V]. Replaces `state` by the state after the last token, detached
  // from the graph. Any N: processing a document whole, in pieces or token by token gives the same
  // result. Rows marked by State::reset() start a new document; unless all rows do, that is
  // possible only between blocks of W tokens.
  // `zero_states`: tokens read zeros instead of recurrent states (to measure their contribution).
  Tensor forward_tokens(const Tensor& tokens, State& state, const Scope& scope,
                        bool zero_states = false);

  // The summed loss of the same pass against labels [B, N], without materializing the logits.
  LossSum loss_of_tokens(const Tensor& tokens, const Tensor& labels, State& state,
                         double smoothing = 0.0);

  // Prepares a state of `rows` rows for further tokens (empty: a new document in each row): rejects
  // states that do not fit, and resets rows marked by State::reset(). → positions [B, 1].
  Tensor begin(State& state, int64_t rows) const;

  // Loads a state of `rows` rows (0: any number) that this model can continue from. Throws
  // Error{bad_input} naming the tensors that do not fit the model. In addition to the network's
  // tensors, the state may hold the logits after the last token [B, V] and the document's recent
  // tokens (RecentTokens).
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
  // The layout of a state at the positions in `state`; rejects impossible positions.
  StateLayout state_layout(const State& state, int64_t rows, const std::string& source) const;
  Tensor forward_by_blocks(const Tensor& x, int64_t source, ForwardContext& context,
                           const Scope& scope);
  int64_t tokens_seen(const Tensor& position) const;
  // tokens [B, N] → the stream after all levels [B, N, D].
  Tensor read_tokens(const Tensor& tokens, State& state, const Scope& scope, bool zero_states);
  // Input of the head, the head, and its logits.
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
