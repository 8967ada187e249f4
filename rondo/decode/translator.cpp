// Translating lines.
#include "rondo/decode/translator.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr int kTimings = 3;             // the fastest of so many counts
constexpr int64_t kTypicalLength = 24;  // tokens of the sentences used for timing

double seconds_of(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < kTimings; ++i) {
    const auto started = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace

Translator::Translator(std::shared_ptr<EncoderDecoder> model, PairTokenizers tokenizers,
                       const TranslatorOptions& options)
    : model_(std::move(model)), tokenizers_(std::move(tokenizers)), options_(options) {
  const TokenMarks marks = tokenizers_.target->marks();
  marks_.begin = marks.begin;
  marks_.end = marks.end;
  marks_.banned = {marks.padding, marks.begin};
  if (marks.unknown >= 0) marks_.banned.push_back(marks.unknown);
  // Rows of a table padded beyond the tokenizer stand for nothing.
  for (int64_t id = tokenizers_.target->vocabulary(); id < model_->config().target_vocabulary;
       ++id) {
    marks_.banned.push_back(id);
  }
  model_->eval();
  folding_.possible = options_.signals != SignalMode::apart && model_->fold_signals();
  model_->convert(options_.format);
  folding_.encoder = folding_.decoder = folding_.possible;
  if (folding_.possible) model_->use_folded(true, true);
  // Rounded weights round differently folded and apart: what is written must not hang on a clock.
  to_be_timed_ = folding_.possible && options_.signals == SignalMode::fastest &&
                 options_.format == nn::WeightFormat::fp32;
}

void Translator::time_signals() {
  const at::NoGradGuard no_grad;
  folding_.encoder = time_encoder(true) < time_encoder(false);
  folding_.decoder = time_decoder(true) < time_decoder(false);
  model_->use_folded(folding_.encoder, folding_.decoder);
  to_be_timed_ = false;
}

double Translator::time_encoder(bool folded) {
  model_->use_folded(folded, false);
  const Tensor source = at::full({options_.batch, kTypicalLength}, marks_.end, at::kLong);
  return seconds_of([&] { model_->encode(source, Scope()); });
}

double Translator::time_decoder(bool folded) {
  model_->use_folded(false, folded);
  const Tensor source = at::full({options_.batch, kTypicalLength}, marks_.end, at::kLong);
  const State start = model_->encode(source, Scope());
  const Tensor tokens = at::full({options_.batch * options_.beam.beam, 1}, marks_.end, at::kLong);
  return seconds_of([&] {
    State state = start;
    BeamCache beams;
    for (int i = 0; i < 3; ++i) model_->head(model_->decode_beams(tokens, state, beams), Scope());
  });
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines) {
  std::vector<Translation> results(lines.size());
  std::vector<std::vector<int32_t>> sources(lines.size());
  std::vector<size_t> order;
  const TokenMarks marks = tokenizers_.source->marks();
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
    results[i].unknown = std::count(sources[i].begin(), sources[i].end(), marks.unknown);
    sources[i].push_back(marks.end);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() < sources[b].size(); });
  const auto batch = static_cast<size_t>(options_.batch);
  if (to_be_timed_ && order.size() > batch) time_signals();
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
                                 std::vector<Translation>& results) {
  const auto rows = static_cast<int64_t>(which.size());
  const auto length = static_cast<int64_t>(sources[which.back()].size());  // sorted: the longest
  Tensor source = at::full({rows, length}, model_->config().padding, at::kLong);
  auto table = source.accessor<int64_t, 2>();
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<int32_t>& tokens = sources[which[static_cast<size_t>(r)]];
    for (size_t t = 0; t < tokens.size(); ++t) table[r][static_cast<int64_t>(t)] = tokens[t];
  }
  const auto found = beam_search(*model_, source, marks_, options_.beam);
  for (size_t r = 0; r < which.size(); ++r) {
    for (const Hypothesis& h : found[r]) {
      Translation::Candidate c;
      // A translation is one line, whatever the model writes.
      c.text = tokenizers_.target->decode(h.tokens);
      std::replace(c.text.begin(), c.text.end(), '\n', ' ');
      c.tokens = h.tokens;
      c.log_probability = h.log_probability;
      c.score = h.score;
      results[which[r]].candidates.push_back(std::move(c));
    }
  }
}

}  // namespace rondo
