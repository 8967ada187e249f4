// Opening the tokenizers of both sides, and training those that do not exist yet.
#include "rondo/data/pair_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/data/parallel_text.h"
#include "rondo/data/text_source.h"

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

// The lines [first, last) of a file as a source of text: a part in bytes.
std::string lines_of(const std::string& path, int64_t first, int64_t last) {
  TextReader reader(path);
  std::vector<char> block(size_t{1} << 16);
  int64_t line = 0;  // of the next byte
  int64_t at = 0;    // bytes before the block
  int64_t begin = 0;
  size_t got = 0;
  while ((got = reader.read(block.data(), block.size())) > 0) {
    const auto end = block.begin() + static_cast<std::ptrdiff_t>(got);
    for (auto newline = std::find(block.begin(), end, '\n'); newline != end;
         newline = std::find(newline + 1, end, '\n')) {
      const int64_t next = at + (newline - block.begin()) + 1;
      if (++line == first) begin = next;
      if (line == last) return fmt::format("{}#{}B:{}B", path, begin, next);
    }
    at += static_cast<int64_t>(got);
  }
  return begin == 0 ? path : fmt::format("{}#{}B:", path, begin);
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

void train_pair_tokenizers(PairConfig& data, const std::string& cache_folder) {
  const auto train = [&](std::string& spec, bool source, bool target) {
    if (!parse_tokenizer_request(spec).has_value()) return;
    const ParallelFiles files = find_parallel(data.train, data.source, data.target);
    std::vector<std::string> sources;
    const auto add = [&](const std::string& file) {
      sources.push_back(files.whole() ? file : lines_of(file, files.first_line, files.last_line));
    };
    const bool table = files.target.empty();  // one file holds both sides
    if (source || table) add(files.source);
    if (target && !table) add(files.target);
    spec = tokenizer_file(spec, sources, cache_folder);
  };
  train(data.tokenizer, true, true);
  train(data.source_tokenizer, true, false);
  train(data.target_tokenizer, false, true);
}

}  // namespace rondo
