// What a recurrent state was worth to each token written: its log-probability as the model gave it,
// minus that of the same model whose tokens read zeros in place of the states.
#pragma once

#include <vector>

#include "rondo/model/language_model.h"

namespace rondo::serve {

class StateGain {
 public:
  // For a text that goes on from `state`. Of its first token nothing is known: the state has given
  // its logits already.
  StateGain(LanguageModel& model, const State& state);

  // A token was written with this log-probability.
  void add(int64_t token, double logprob);
  // Gains since the last call, once enough tokens are together to be worth a pass, or `all`.
  std::vector<double> take(bool all);
  int64_t told() const { return told_; }

 private:
  // Reads tokens without states → log-probabilities after each [N, V].
  Tensor read(const std::vector<int32_t>& tokens);

  LanguageModel* model_;
  State state_;
  Tensor last_;  // log-probabilities after all tokens read [V]; undefined: none yet
  std::vector<int32_t> tokens_;
  std::vector<double> logprobs_;
  int64_t told_ = 0;
};

}  // namespace rondo::serve
