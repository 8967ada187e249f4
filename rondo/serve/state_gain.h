// The contribution of a recurrent state to each generated token: its log-probability under the
// model, minus that under the same model with zeros instead of the states.
#pragma once

#include <vector>

#include "rondo/model/language_model.h"

namespace rondo::serve {

class StateGain {
 public:
  // For a text that continues from `state`. Its first token has no gain: its logits are already
  // part of the state.
  StateGain(LanguageModel& model, const State& state);

  // A token was generated with this log-probability.
  void add(int64_t token, double logprob);
  // Gains since the last call, once there are enough tokens for an efficient pass, or if `all`.
  std::vector<double> take(bool all);
  int64_t told() const { return told_; }

 private:
  // Processes tokens without states → log-probabilities after each [N, V].
  Tensor read(const std::vector<int32_t>& tokens);

  LanguageModel* model_;
  State state_;
  Tensor last_;  // log-probabilities after the last token processed [V]; undefined: none yet
  std::vector<int32_t> tokens_;
  std::vector<double> logprobs_;
  int64_t told_ = 0;
};

}  // namespace rondo::serve
