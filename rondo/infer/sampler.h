// From logits to the next token: repetition penalty, temperature, top-k, top-p, and a draw that is
// a function of (seed, number of the token in its document) alone: a document continued from a
// state is the one that would have been written without a break.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace rondo {

struct SamplerOptions {
  double temperature = 1.0;  // 0 = always the likeliest token
  int64_t top_k = 0;         // only the k likeliest; 0 = all
  double top_p = 1.0;        // only the likeliest that together reach this probability
  double repetition_penalty =
      1.0;  // divides positive and multiplies negative logits of recent tokens
  int64_t repetition_window = 64;  // how many tokens count as recent
  uint64_t seed = 1;
};

class Sampler {
 public:
  // Error{bad_input} for options that mean nothing.
  explicit Sampler(const SamplerOptions& options);

  // Picks the document's token `number` and remembers it.
  int64_t sample(const std::vector<float>& logits, uint64_t number);
  // Remembers a token that was given (a prompt's) without drawing.
  void remember(int64_t token);

 private:
  // `logits`, or a copy in which recent tokens are made less likely.
  const std::vector<float>& penalized(const std::vector<float>& logits);
  // Weights proportional to probabilities.
  void weigh(const std::vector<float>& logits);
  // Puts the tokens that may be drawn first in order_; how many they are.
  size_t choose_nucleus();

  SamplerOptions options_;
  std::deque<int64_t> recent_;
  std::vector<float> penalized_;
  std::vector<int64_t> order_;
  std::vector<double> weights_;
};

}  // namespace rondo
