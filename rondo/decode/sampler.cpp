// Sampling.
#include "rondo/decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "rondo/base/random.h"

namespace rondo {

void Sampler::remember(int64_t token) {
  recent_.push_back(token);
  while (static_cast<int64_t>(recent_.size()) > options_.repetition_window) recent_.pop_front();
}

void Sampler::penalise(std::vector<float>& logits) const {
  if (options_.repetition_penalty == 1.0) return;
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const int64_t token : std::set<int64_t>(recent_.begin(), recent_.end())) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

int64_t Sampler::sample(std::vector<float>& logits, uint64_t number) {
  penalise(logits);
  if (options_.temperature <= 0.0) {
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    remember(best);
    return best;
  }
  // Likeliest first; only as many as can be chosen need an order.
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  size_t kept = logits.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<size_t>(options_.top_k));
  std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept),
                    order_.end(), likelier);
  const double highest = logits[static_cast<size_t>(order_[0])];
  std::vector<double> weights(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    const double logit = logits[static_cast<size_t>(order_[i])];
    weights[i] = std::exp((logit - highest) / options_.temperature);
    total += weights[i];
  }
  double reached = 0;
  size_t nucleus = 0;
  while (nucleus < kept) {
    reached += weights[nucleus++];
    if (reached >= options_.top_p * total) break;
  }
  double left = CounterRandom(options_.seed, "sample", number).uniform() * reached;
  size_t chosen = 0;
  while (chosen + 1 < nucleus && left >= weights[chosen]) left -= weights[chosen++];
  remember(order_[chosen]);
  return order_[chosen];
}

}  // namespace rondo
