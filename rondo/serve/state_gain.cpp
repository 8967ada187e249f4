// Recomputes log-probabilities without states.
#include "rondo/serve/state_gain.h"

#include "rondo/infer/runtime.h"
#include "rondo/model/recent_tokens.h"

namespace rondo::serve {
namespace {

constexpr size_t kTogether = 16;  // tokens per pass

}  // namespace

StateGain::StateGain(LanguageModel& model, const State& state) : model_(&model), state_(state) {
  for (const char* name : {"logits", RecentTokens::kName}) state_ = state_.without(name);
}

void StateGain::add(int64_t token, double logprob) {
  tokens_.push_back(static_cast<int32_t>(token));
  logprobs_.push_back(logprob);
}

Tensor StateGain::read(const std::vector<int32_t>& tokens) {
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(tokens.size());
  const Tensor row = at::empty({1, count}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.data_ptr<int64_t>());
  return model_->forward_tokens(row, state_, Scope(), /*zero_states=*/true)[0].log_softmax(-1);
}

std::vector<double> StateGain::take(bool all) {
  if (tokens_.empty() || (tokens_.size() < kTogether && !all)) return {};
  std::vector<double> gains;
  Runtime::get().compute([&] {
    const Tensor logprobs = read(tokens_);  // after each token
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Tensor before = i == 0 ? last_ : logprobs[static_cast<int64_t>(i) - 1];
      const double without =
          before.defined() ? before[tokens_[i]].item<double>() : logprobs_[i];  // the first token
      gains.push_back(logprobs_[i] - without);
    }
    last_ = logprobs[logprobs.size(0) - 1].clone();
  });
  told_ += static_cast<int64_t>(tokens_.size());
  tokens_.clear();
  logprobs_.clear();
  return gains;
}

}  // namespace rondo::serve
