// Translating lines.
#include "rondo/infer/translator.h"

#include <algorithm>

#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/infer/runtime.h"

namespace rondo {
namespace {

void check_vocabulary(const char* side, const Tokenizer* tokenizer, int64_t model) {
  require(tokenizer != nullptr, "translator: no {} tokenizer given", side);
  require(tokenizer->vocabulary() <= model,
          "translator: {} tokenizer: expected at most {} tokens, as in the model, got {}", side,
          model, tokenizer->vocabulary());
}

}  // namespace

Translator::Translator(std::shared_ptr<const CompiledTranslationModel> model,
                       PairTokenizers tokenizers, const TranslatorOptions& options)
    : model_(std::move(model)), tokenizers_(std::move(tokenizers)), options_(options) {
  require(model_ != nullptr, "translator: no model given");
  check_vocabulary("source", tokenizers_.source.get(), model_->config().source_vocabulary);
  check_vocabulary("target", tokenizers_.target.get(), model_->config().target_vocabulary);
  require(options.batch >= 1, "translator: expected a batch of 1 or more, got {}", options.batch);
  require(options.max_source_tokens >= 1, "translator: expected 1 or more source tokens, got {}",
          options.max_source_tokens);
  check_beam_options(options.beam);
  const SpecialTokens special_tokens = tokenizers_.target->special_tokens();
  special_tokens_.begin = special_tokens.begin;
  special_tokens_.end = special_tokens.end;
  special_tokens_.banned = {special_tokens.padding, special_tokens.begin};
  if (special_tokens.unknown >= 0) special_tokens_.banned.push_back(special_tokens.unknown);
  // Ids beyond the tokenizer's are padding of the embedding table.
  for (int64_t id = tokenizers_.target->vocabulary(); id < model_->config().target_vocabulary;
       ++id) {
    special_tokens_.banned.push_back(id);
  }
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines) const {
  std::vector<Translation> results(lines.size());
  std::vector<std::vector<int32_t>> sources(lines.size());
  std::vector<size_t> order;
  const SpecialTokens special_tokens = tokenizers_.source->special_tokens();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) {
      results[i].candidates.resize(1);
      continue;
    }
    sources[i] = tokenizers_.source->encode(lines[i]);
    const auto limit = static_cast<size_t>(options_.max_source_tokens);
    results[i].cut = sources[i].size() > limit;
    if (results[i].cut) sources[i].resize(limit);
    results[i].source_tokens = static_cast<int64_t>(sources[i].size());
    results[i].unknown = std::count(sources[i].begin(), sources[i].end(), special_tokens.unknown);
    sources[i].push_back(special_tokens.end);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() < sources[b].size(); });
  const auto batch = static_cast<size_t>(options_.batch);
  for (size_t first = 0; first < order.size(); first += batch) {
    const size_t last = std::min(order.size(), first + batch);
    translate_batch(
        sources,
        {order.begin() + static_cast<int64_t>(first), order.begin() + static_cast<int64_t>(last)},
        results);
  }
  return results;
}

void Translator::translate_batch(const std::vector<std::vector<int32_t>>& sources,
                                 const std::vector<size_t>& which,
                                 std::vector<Translation>& results) const {
  const auto rows = static_cast<int64_t>(which.size());
  const auto length = static_cast<int64_t>(sources[which.back()].size());  // sorted: the longest
  Tensor source = at::full({rows, length}, model_->config().padding, at::kLong);
  auto table = source.accessor<int64_t, 2>();
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<int32_t>& tokens = sources[which[static_cast<size_t>(r)]];
    for (size_t t = 0; t < tokens.size(); ++t) table[r][static_cast<int64_t>(t)] = tokens[t];
  }
  std::vector<std::vector<Hypothesis>> found;
  const Runtime::Turn turn(Runtime::get());
  turn.compute(
      [&] { found = beam_search(*model_, source, special_tokens_, options_.beam, turn.team()); });
  for (size_t r = 0; r < which.size(); ++r) {
    for (const Hypothesis& h : found[r]) {
      Translation::Candidate c;
      // A translation is one line of UTF-8, whatever the model generates.
      c.text = replace_invalid_utf8(tokenizers_.target->decode(h.tokens));
      std::replace(c.text.begin(), c.text.end(), '\n', ' ');
      c.tokens = h.tokens;
      c.log_probability = h.log_probability;
      c.score = h.score;
      results[which[r]].candidates.push_back(std::move(c));
    }
  }
}

}  // namespace rondo
