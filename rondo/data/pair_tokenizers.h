// The tokenizers of a translation model.
#pragma once

#include "rondo/config/model_config.h"
#include "rondo/config/train_config.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

// The tokenizers of both sides; the same one when they share it.
struct PairTokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};
// Error{bad_input} if a side has none, or one that does not fit the model: more tokens than the
// model has rows, another padding, or no token for the beginning or end.
PairTokenizers open_pair_tokenizers(const PairConfig& data, const EncoderDecoderConfig& model);

}  // namespace rondo
