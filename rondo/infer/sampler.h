// Samples the next token from logits: repetition penalty, temperature, top-k, top-p, and random
// numbers that depend only on (seed, token position in the document): a document resumed from a
// state is the same as one generated without interruption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "rondo/data/tokenizer.h"

namespace rondo {

struct SamplerOptions {
  double temperature = 1.0;  // 0 = always the likeliest token
  int64_t top_k = 0;         // only the k likeliest; 0 = all
  double top_p = 1.0;        // only the likeliest whose total reaches this probability
  double repetition_penalty =
      1.0;  // divides positive and multiplies negative logits of recent tokens
  int64_t repetition_window = 64;  // how many tokens count as recent
  uint64_t seed = 1;
  std::vector<int64_t> excluded = {};  // tokens that are never sampled
};

// The tokens of a model's vocabulary that stand for no text: the tokenizer's special tokens and
// ids beyond its own vocabulary. Nothing trains their logits.
std::vector<int64_t> tokens_without_text(const Tokenizer& tokenizer, int64_t model_vocabulary);

class Sampler {
 public:
  // Throws Error{bad_input} for invalid options.
  explicit Sampler(const SamplerOptions& options);

  // Samples the document's token `number` and remembers it.
  int64_t sample(const std::vector<float>& logits, uint64_t number);
  // Remembers a token that was not sampled, such as one of the prompt.
  void remember(int64_t token);

 private:
  // `logits`, or a copy with the repetition penalty and exclusions applied.
  const std::vector<float>& adjusted(const std::vector<float>& logits);
  // Weights proportional to probabilities.
  void weigh(const std::vector<float>& logits);
  // Moves the tokens that may be sampled to the front of order_; returns their number.
  size_t choose_nucleus();

  SamplerOptions options_;
  std::deque<int64_t> recent_;
  std::vector<float> adjusted_;
  std::vector<int64_t> order_;
  std::vector<double> weights_;
};

}  // namespace rondo
