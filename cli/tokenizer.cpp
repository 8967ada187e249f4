// rondo tokenizer train.
#include <fmt/format.h>

#include "cli/verbs.h"
#include "rondo/data/tokenizer.h"

namespace rondo::cli {

void run_tokenizer_train(const TokenizerOptions& options) {
  TokenizerTraining training;
  training.sources = options.sources;
  training.output = options.output;
  training.vocabulary = options.vocabulary;
  training.type = options.type;
  train_tokenizer(training);
  const auto tokenizer = make_tokenizer(options.output);
  fmt::print("{}: {} tokens\n", options.output, tokenizer->vocabulary());
}

}  // namespace rondo::cli
