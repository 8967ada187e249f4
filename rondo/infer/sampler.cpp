// Sampling.
#include "rondo/infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "rondo/base/random.h"
#include "rondo/base/require.h"
#include "rondo/kernels/best_of_row.h"

namespace rondo {

std::vector<int64_t> tokens_without_text(const Tokenizer& tokenizer, int64_t model_vocabulary) {
  const SpecialTokens special = tokenizer.special_tokens();
  std::set<int64_t> tokens;
  for (const int32_t token : {special.padding, special.begin, special.end, special.unknown}) {
    if (token >= 0 && token < model_vocabulary) tokens.insert(token);
  }
  for (int64_t token = tokenizer.vocabulary(); token < model_vocabulary; ++token) {
    tokens.insert(token);
  }
  return {tokens.begin(), tokens.end()};
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  const SamplerOptions& o = options_;
  require(o.temperature >= 0, "sampler: expected a temperature of 0 or more, got {}",
          o.temperature);
  require(o.top_k >= 0, "sampler: expected a top-k of 0 or more, got {}", o.top_k);
  require(o.top_p >= 0 && o.top_p <= 1, "sampler: expected a top-p from 0 to 1, got {}", o.top_p);
  require(o.repetition_penalty > 0, "sampler: expected a repetition penalty above 0, got {}",
          o.repetition_penalty);
  require(o.repetition_window >= 0, "sampler: expected a repetition window of 0 or more, got {}",
          o.repetition_window);
}

void Sampler::remember(int64_t token) {
  recent_.push_back(token);
  while (static_cast<int64_t>(recent_.size()) > options_.repetition_window) recent_.pop_front();
}

const std::vector<float>& Sampler::adjusted(const std::vector<float>& logits) {
  if (options_.repetition_penalty == 1.0 && options_.excluded.empty()) return logits;
  adjusted_ = logits;
  const auto at = [&](int64_t token) -> float& {
    require(token >= 0 && token < static_cast<int64_t>(logits.size()),
            "sampler: expected tokens from 0 to {}, got {}", logits.size() - 1, token);
    return adjusted_[static_cast<size_t>(token)];
  };
  if (options_.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(options_.repetition_penalty);
    for (const int64_t token : std::set<int64_t>(recent_.begin(), recent_.end())) {
      float& logit = at(token);
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  for (const int64_t token : options_.excluded) at(token) = -std::numeric_limits<float>::infinity();
  return adjusted_;
}

int64_t Sampler::sample(const std::vector<float>& given, uint64_t number) {
  require(!given.empty(), "sampler: no logits given");
  const std::vector<float>& logits = adjusted(given);
  if (options_.temperature <= 0.0) {
    float highest = 0.0F;
    int64_t best = 0;
    kernels::best_of_row(logits.data(), static_cast<int64_t>(logits.size()), 1, &highest, &best);
    remember(best);
    return best;
  }
  weigh(logits);
  const size_t nucleus = choose_nucleus();
  double reached = 0;
  for (size_t i = 0; i < nucleus; ++i) reached += weights_[static_cast<size_t>(order_[i])];
  double left = CounterRandom(options_.seed, "sample", number).uniform() * reached;
  size_t chosen = 0;
  while (chosen + 1 < nucleus && left >= weights_[static_cast<size_t>(order_[chosen])]) {
    left -= weights_[static_cast<size_t>(order_[chosen++])];
  }
  remember(order_[chosen]);
  return order_[chosen];
}

void Sampler::weigh(const std::vector<float>& logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  weights_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp((static_cast<double>(logits[i]) - highest) / options_.temperature);
  }
}

// Only tokens that can be sampled are sorted, and none without top_k and top_p: sorting the whole
// vocabulary takes longer than a decoding step of a small network.
size_t Sampler::choose_nucleus() {
  order_.resize(weights_.size());
  std::iota(order_.begin(), order_.end(), 0);
  size_t kept = order_.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<size_t>(options_.top_k));
  size_t sorted = 0;
  const auto sort_to = [&](size_t end) {
    const auto first = order_.begin();
    std::partial_sort(first + static_cast<std::ptrdiff_t>(sorted),
                      first + static_cast<std::ptrdiff_t>(end), order_.end(),
                      [&](int64_t a, int64_t b) {
                        const double x = weights_[static_cast<size_t>(a)];
                        const double y = weights_[static_cast<size_t>(b)];
                        return x != y ? x > y : a < b;
                      });
    sorted = end;
  };
  if (kept < order_.size()) sort_to(kept);
  if (options_.top_p >= 1.0) return kept;
  double total = 0;
  for (size_t i = 0; i < kept; ++i) total += weights_[static_cast<size_t>(order_[i])];
  constexpr size_t kFew = 64;  // usually enough of them
  double reached = 0;
  for (size_t i = 0; i < kept; ++i) {
    if (i == sorted) sort_to(std::min(kept, std::max(kFew, 4 * sorted)));
    reached += weights_[static_cast<size_t>(order_[i])];
    if (reached >= options_.top_p * total) return i + 1;
  }
  return kept;
}

}  // namespace rondo
