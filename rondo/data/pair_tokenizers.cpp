// Opening the tokenizers of both sides.
#include "rondo/data/pair_tokenizers.h"

#include <fmt/format.h>

#include "rondo/base/error.h"

namespace rondo {
namespace {

std::shared_ptr<const Tokenizer> open_side(const std::string& spec, const char* side,
                                           int64_t vocabulary, int64_t padding) {
  if (spec.empty()) {
    throw Error(ExitCode::bad_input, fmt::format("data.tokenizer: missing for the {}", side),
                "train one: rondo tokenizer train FILES -o joint.model --vocab 8000");
  }
  auto tokenizer = make_tokenizer(spec);
  if (tokenizer->vocabulary() > vocabulary) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("model.{}_vocabulary: expected at least {}, the vocabulary of {}, got {}", side,
                    tokenizer->vocabulary(), tokenizer->name(), vocabulary),
        fmt::format("set model.{}_vocabulary to the tokenizer's", side));
  }
  const SpecialTokens special_tokens = tokenizer->special_tokens();
  if (special_tokens.padding != padding) {
    throw Error(ExitCode::bad_input,
                fmt::format("model.padding: expected {}, the padding of {}, got {}",
                            special_tokens.padding, tokenizer->name(), padding),
                fmt::format("--set model.padding={}", special_tokens.padding));
  }
  if (special_tokens.begin < 0 || special_tokens.end < 0) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: has no token for the beginning or end of a sentence", tokenizer->name()),
        "train one with 'rondo tokenizer train'");
  }
  return tokenizer;
}

}  // namespace

PairTokenizers open_pair_tokenizers(const PairConfig& data, const EncoderDecoderConfig& model) {
  PairTokenizers t;
  t.source =
      open_side(data.tokenizer_of_source(), "source", model.source_vocabulary, model.padding);
  t.target =
      open_side(data.tokenizer_of_target(), "target", model.target_vocabulary, model.padding);
  return t;
}

}  // namespace rondo
