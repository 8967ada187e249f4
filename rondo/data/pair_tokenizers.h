// The tokenizers of a translation model.
#pragma once

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

}  // namespace rondo
