// From logits to tokens: each option against a direct computation of the probabilities; a draw
// depends only on seed and position.
#include "rondo/infer/sampler.h"
#include "rondo/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace rondo::test {
namespace {

const std::vector<float> kSomeLogits = {1.0F, -0.5F, 2.5F, 0.0F, 2.0F, -3.0F, 1.5F, 0.5F};

using Distribution = std::vector<double>;

Distribution softmax_of(const std::vector<double>& scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  Distribution p;
  for (const double score : scores) p.push_back(std::exp(score - highest));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

// Probabilities by the definition of the options, computed directly.
Distribution direct(const SamplerOptions& o, const std::vector<int64_t>& recent = {}) {
  std::vector<double> scores(kSomeLogits.begin(), kSomeLogits.end());
  for (const int64_t token : std::set<int64_t>(recent.begin(), recent.end())) {
    double& score = scores[static_cast<size_t>(token)];
    score = score > 0 ? score / o.repetition_penalty : score * o.repetition_penalty;
  }
  for (double& score : scores) score /= o.temperature;
  if (o.top_k > 0) {
    std::vector<double> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    const double least = sorted[std::min(sorted.size(), static_cast<size_t>(o.top_k)) - 1];
    for (double& score : scores) score = score >= least ? score : -INFINITY;
  }
  Distribution p = softmax_of(scores);
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  double reached = 0;
  for (const size_t token : order) {
    if (token != order[0] && reached >= o.top_p) p[token] = 0;
    reached += p[token];
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

Distribution frequencies(const SamplerOptions& o, const std::vector<int64_t>& recent,
                         int64_t draws) {
  Distribution counts(kSomeLogits.size(), 0.0);
  for (int64_t i = 0; i < draws; ++i) {
    Sampler sampler(o);
    for (const int64_t token : recent) sampler.remember(token);
    counts[static_cast<size_t>(sampler.sample(kSomeLogits, static_cast<uint64_t>(i)))] += 1.0;
  }
  for (double& x : counts) x /= static_cast<double>(draws);
  return counts;
}

// Frequencies within four standard deviations, and never a token of probability zero.
void expect_distribution(const SamplerOptions& o, const std::vector<int64_t>& recent = {}) {
  constexpr int64_t kDraws = 20000;
  const Distribution want = direct(o, recent);
  const Distribution got = frequencies(o, recent, kDraws);
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0) {
      EXPECT_EQ(got[i], 0.0) << i;
    }
    const double deviation = std::sqrt(want[i] * (1 - want[i]) / static_cast<double>(kDraws));
    EXPECT_NEAR(got[i], want[i], 4 * deviation + 1e-9) << i;
  }
}

SamplerOptions options_with(double temperature, int64_t top_k = 0, double top_p = 1.0,
                            double penalty = 1.0) {
  SamplerOptions o;
  o.temperature = temperature;
  o.top_k = top_k;
  o.top_p = top_p;
  o.repetition_penalty = penalty;
  return o;
}

int64_t draw(Sampler& sampler, uint64_t number) { return sampler.sample(kSomeLogits, number); }

TEST(Sampling, GreedyTakesTheLikeliestAndTheFirstOfEquals) {
  Sampler greedy(options_with(0.0));
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(draw(greedy, i), 2);
  std::vector<float> equal = {1.0F, 4.0F, 4.0F};
  EXPECT_EQ(greedy.sample(equal, 0), 1);
}

TEST(Sampling, FollowsTheProbabilities) { expect_distribution(options_with(1.0)); }

TEST(Sampling, FollowsTheTemperature) {
  expect_distribution(options_with(0.4));
  expect_distribution(options_with(3.0));
}

TEST(Sampling, KeepsTheTopK) {
  for (const int64_t k : {1, 3, 7, 8, 100}) expect_distribution(options_with(1.3, k));
}

TEST(Sampling, KeepsTheTopP) {
  for (const double p : {0.0, 0.3, 0.6, 0.95, 1.0}) expect_distribution(options_with(1.0, 0, p));
}

TEST(Sampling, KeepsTheTopPOfTheTopK) { expect_distribution(options_with(2.0, 4, 0.7)); }

TEST(Sampling, PenalisesWhatWasRecent) {
  expect_distribution(options_with(1.0, 0, 1.0, 2.0), {2, 4, 4, 5});
  expect_distribution(options_with(0.7, 5, 0.9, 0.5), {1, 2});
  Sampler greedy(options_with(0.0, 0, 1.0, 2.0));
  EXPECT_EQ(draw(greedy, 0), 2);  // 2.5
  EXPECT_EQ(draw(greedy, 1), 4);  // 2.0, for 2 counts 1.25 now
  EXPECT_EQ(draw(greedy, 2), 6);  // 1.5
  EXPECT_EQ(draw(greedy, 3), 2);  // 1.25 again
}

TEST(Sampling, NeverSamplesWhatIsExcluded) {
  SamplerOptions o = options_with(0.0);
  o.excluded = {2};
  Sampler greedy(o);
  EXPECT_EQ(draw(greedy, 0), 4);
  o.temperature = 5.0;
  Sampler hot(o);
  for (uint64_t i = 0; i < 500; ++i) EXPECT_NE(draw(hot, i), 2);
  o.excluded = {static_cast<int64_t>(kSomeLogits.size())};
  EXPECT_THROW(Sampler(o).sample(kSomeLogits, 0), Error);
}

TEST(Sampling, TokensWithoutTextAreSpecialOrBeyondTheTokenizer) {
  const auto bytes = make_tokenizer("bytes");
  EXPECT_EQ(tokens_without_text(*bytes, 260), (std::vector<int64_t>{256, 257, 258, 259}));
  EXPECT_EQ(tokens_without_text(*bytes, 262), (std::vector<int64_t>{256, 257, 258, 259, 260, 261}));
  EXPECT_TRUE(tokens_without_text(*bytes, 256).empty());
}

TEST(Sampling, ForgetsWhatIsLongAgo) {
  SamplerOptions o = options_with(0.0, 0, 1.0, 100.0);
  o.repetition_window = 2;
  Sampler greedy(o);
  const std::vector<int64_t> want = {2, 4, 6, 2, 4, 6, 2};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(draw(greedy, i), want[i]) << i;
}

TEST(Sampling, IsAFunctionOfSeedAndNumber) {
  SamplerOptions o;
  o.seed = 9;
  std::map<uint64_t, int64_t> drawn;
  Sampler forward(o);
  for (uint64_t i = 0; i < 50; ++i) drawn[i] = draw(forward, i);
  Sampler backward(o);
  for (uint64_t i = 50; i-- > 0;) EXPECT_EQ(draw(backward, i), drawn[i]);
  o.seed = 10;
  Sampler other(o);
  int64_t same = 0;
  for (uint64_t i = 0; i < 50; ++i) same += draw(other, i) == drawn[i] ? 1 : 0;
  EXPECT_LT(same, 35);
}

TEST(Sampling, SurvivesExtremeLogits) {
  for (const double temperature : {1e-300, 1e-3, 1.0, 100.0}) {
    Sampler sampler(options_with(temperature));
    std::vector<float> extreme = {-1e30F, 3e38F, -3e38F, 0.0F};
    EXPECT_EQ(sampler.sample(extreme, 1), 1) << temperature;
  }
}

}  // namespace
}  // namespace rondo::test
