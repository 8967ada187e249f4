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
                "learn one: rondo tokenizer train FILES -o joint.model --vocab 8000");
  }
  auto tokenizer = make_tokenizer(spec);
  if (tokenizer->vocabulary() > vocabulary) {
    throw Error(ExitCode::bad_input,
                fmt::format("model.{}_vocabulary: expected at least {}, the tokens of {}, got {}",
                            side, tokenizer->vocabulary(), tokenizer->name(), vocabulary),
                fmt::format("set model.{}_vocabulary to the tokenizer's", side));
  }
  const TokenMarks marks = tokenizer->marks();
  if (marks.padding != padding) {
    throw Error(ExitCode::bad_input,
                fmt::format("model.padding: expected {}, the padding of {}, got {}", marks.padding,
                            tokenizer->name(), padding),
                fmt::format("--set model.padding={}", marks.padding));
  }
  if (marks.begin < 0 || marks.end < 0) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: has no mark for the beginning or the end of a sentence",
                            tokenizer->name()),
                "learn one with 'rondo tokenizer train'");
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
