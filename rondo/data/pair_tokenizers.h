// The tokenizers of a translation model.
#pragma once

#include <memory>
#include <string>

#include "rondo/config/model_config.h"
#include "rondo/config/train_config.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

// The tokenizers of both sides; the same object if they share one.
struct PairTokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};
// Error{bad_input} if a side has no tokenizer or one that does not match the model: more tokens
// than the model has rows, different padding, or no begin or end token.
PairTokenizers open_pair_tokenizers(const PairConfig& data, const EncoderDecoderConfig& model);

// Replaces tokenizers still to be trained ("bpe:4096") by their files. They are trained on the
// lines that data.train selects and no others, and kept in `cache_folder` (see tokenizer_file()).
void train_pair_tokenizers(PairConfig& data, const std::string& cache_folder);

}  // namespace rondo
