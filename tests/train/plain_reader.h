// The plainest possible reader: every document alone, whole, from an empty state.
#pragma once

#include "tests/train/train_test_util.h"

namespace rondo::test {

class PlainReader {
 public:
  PlainReader(LanguageModel& model, const Documents& documents)
      : model_(model), documents_(documents) {}

  Tensor tokens(int64_t document, int64_t count) const {  // the first `count` [1, count]
    const Tensor out = at::empty({1, count}, at::kLong);
    documents_.read(document, 0, count, out.data_ptr<int64_t>());
    return out;
  }
  Tensor tokens(int64_t document) const {
    return tokens(document, documents_.document(document).tokens);
  }

  // Nats of every token of a document but the first.
  std::vector<double> nats(int64_t document) {
    const auto found = known_.find(document);
    if (found != known_.end()) return found->second;
    return known_[document] = nats_of(tokens(document));
  }
  std::vector<double> nats_of(const Tensor& all) const {
    State state;
    return nats_of(all, state);
  }
  std::vector<double> nats_of(const Tensor& all, State& state) const {
    const at::NoGradGuard no_grad;
    const Tensor logits = model_.forward_tokens(all, state, Scope());
    const Tensor logs = at::log_softmax(logits.to(at::kDouble), -1);  // [1, N, V]
    std::vector<double> out;
    for (int64_t i = 1; i < all.size(1); ++i) {
      out.push_back(-logs[0][i - 1][all[0][i]].item<double>());
    }
    return out;
  }

  // The state after the first `count` tokens.
  State state_after(int64_t document, int64_t count) const {
    const at::NoGradGuard no_grad;
    State state;
    model_.forward_tokens(tokens(document, count), state, Scope());
    return state;
  }

 private:
  LanguageModel& model_;
  const Documents& documents_;
  std::map<int64_t, std::vector<double>> known_;
};

}  // namespace rondo::test
