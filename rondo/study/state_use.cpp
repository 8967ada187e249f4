// Runs a text twice in lockstep: with the recurrent states, and with zeros in their place.
#include "rondo/study/state_use.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/study/word_gains.h"
#include "rondo/train/language_score.h"
#include "rondo/train/language_task.h"

namespace rondo::study {
namespace {

// The loss of every label [B, N] in bits; meaningless where there is no label.
Tensor bits_of(const Tensor& logits, const Tensor& labels) {
  return at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), labels.flatten(), {},
                                at::Reduction::None, /*ignore_index=*/-1)
             .view(labels.sizes()) /
         M_LN2;
}

// Means of the gates of one forward pass.
class GateMeans : public Observer {
 public:
  bool wants(const std::string& name) override {
    return name.size() > 5 && name.compare(name.size() - 5, 5, ".gate") == 0;
  }
  void activation(const std::string& name, const Tensor& value) override {
    auto& [sum, count] = gates_[name.substr(0, name.size() - 5)];
    sum += value.mean().item<double>();
    ++count;
  }
  const std::map<std::string, std::pair<double, int64_t>>& gates() const { return gates_; }

 private:
  std::map<std::string, std::pair<double, int64_t>> gates_;
};

double mean_cosine(const Tensor& vectors) {  // [S, D]
  const int64_t count = vectors.size(0);
  if (count < 2) return 1;
  const Tensor unit = vectors / vectors.norm(2, 1, true).clamp_min(1e-12);
  const double all = at::matmul(unit, unit.t()).sum().item<double>();
  const auto n = static_cast<double>(count);
  return (all - n) / (n * (n - 1));
}

StateSample sample_of(const Tensor& state, int64_t position) {  // [S, D]
  StateSample sample;
  sample.position = position;
  sample.norm = state.norm(2, 1).mean().item<double>();
  sample.rank = effective_rank(state.unsqueeze(0));
  sample.similarity = mean_cosine(state);
  return sample;
}

class StateReading {
 public:
  StateReading(LanguageModel& model, const Documents& documents, StateUse& use)
      : model_(model), use_(use) {
    for (int64_t d = 0; d < documents.count(); ++d) {
      gains_.emplace_back(static_cast<size_t>(documents.document(d).tokens), 0.0F);
    }
    const int64_t segments = documents.document(0).tokens / model.config().time.segment + 1;
    every_ = std::max<int64_t>(4, segments / 64);
  }

  void read(const SegmentBatch& batch) {
    const SegmentTensors t(batch);
    with_ = with_.reset(t.reset);
    without_ = without_.reset(t.reset);
    // Samples the first document, while row 0 processes it, only at intervals: observing is slow.
    const bool sampled = batch.document[0] == 0 && batch.offset[0] / batch.length % every_ == 0;
    GateMeans gates;
    const Tensor a = bits_of(
        model_.forward_tokens(t.tokens, with_, sampled ? Scope(&gates) : Scope()), t.labels);
    const Tensor b = bits_of(model_.forward_tokens(t.tokens, without_, Scope(), true), t.labels);
    add(batch, a, b);
    if (sampled) sample(gates, batch.offset[0] + batch.length);
  }

  const std::vector<std::vector<float>>& gains() const { return gains_; }

 private:
  void add(const SegmentBatch& batch, const Tensor& with, const Tensor& without) {
    const auto* a = with.data_ptr<float>();
    const auto* b = without.data_ptr<float>();
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t document = batch.document[static_cast<size_t>(row)];
      for (int64_t i = 0; i < batch.length; ++i) {
        const int64_t at = row * batch.length + i;
        if (batch.labels[static_cast<size_t>(at)] < 0) continue;
        const int64_t position = batch.offset[static_cast<size_t>(row)] + i + 1;
        const double gain = b[at] - a[at];
        use_.bits_with += a[at];
        use_.bits_without += b[at];
        ++use_.tokens;
        bucket_of(use_.by_position, position).add(gain);
        gains_[static_cast<size_t>(document)][static_cast<size_t>(position)] =
            static_cast<float>(gain);
      }
    }
  }

  void sample(const GateMeans& gates, int64_t position) {
    for (int64_t level = 0; level < model_.plan().size(); ++level) {
      const Tensor state = with_.get(level_key(level, "state"));
      if (state.defined()) use_.states[level + 1].push_back(sample_of(state[0], position));
    }
    for (const auto& [name, sum] : gates.gates()) {
      use_.gates[name].emplace_back(position, sum.first / static_cast<double>(sum.second));
    }
  }

  LanguageModel& model_;
  StateUse& use_;
  State with_, without_;
  std::vector<std::vector<float>> gains_;  // [document][token]
  int64_t every_ = 1;
};

std::vector<int32_t> tokens_of(const Documents& documents, int64_t document) {
  std::vector<int64_t> wide(static_cast<size_t>(documents.document(document).tokens));
  documents.read(document, 0, static_cast<int64_t>(wide.size()), wide.data());
  return {wide.begin(), wide.end()};
}

// From the middle of the document, in whole characters.
void take_excerpt(const std::vector<int32_t>& tokens, const std::vector<float>& gains,
                  const std::shared_ptr<const Tokenizer>& tokenizer, int64_t count, StateUse& use) {
  const auto all = static_cast<int64_t>(tokens.size());
  use.excerpt_from = std::max<int64_t>(0, std::min(all / 2, all - count));
  StreamDecoder decoder(tokenizer);
  double bits = 0;
  for (int64_t i = use.excerpt_from; i < std::min(all, use.excerpt_from + count); ++i) {
    bits += gains[static_cast<size_t>(i)];
    const std::string text = decoder.push(tokens[static_cast<size_t>(i)]);
    if (text.empty()) continue;
    use.excerpt.push_back({text, bits});
    bits = 0;
  }
}

}  // namespace

StateUse state_use(LanguageModel& model, const Documents& documents,
                   const std::shared_ptr<const Tokenizer>& tokenizer,
                   const StateUseOptions& options) {
  require(model.stack().has_states(), "state: the model has no recurrent states");
  const at::NoGradGuard no_grad;
  const auto started = std::chrono::steady_clock::now();
  SegmentOptions segments;
  segments.rows = std::min(options.rows, documents.count());
  segments.length = model.config().time.segment;
  segments.shuffle = false;
  segments.endless = false;
  segments.padding = 0;  // never scored
  SegmentReader reader(documents, segments);
  StateUse use;
  StateReading reading(model, documents, use);
  Progress progress("state", documents.tokens());
  SegmentBatch batch;
  while (reader.next(batch)) {
    reading.read(batch);
    progress.update(use.tokens);
  }
  progress.finish();
  require(use.tokens > 0, "state: expected text, got none");
  use.bits_with /= static_cast<double>(use.tokens);
  use.bits_without /= static_cast<double>(use.tokens);
  WordGains words(*tokenizer);
  for (int64_t d = 0; d < documents.count(); ++d) {
    const std::vector<int32_t> tokens = tokens_of(documents, d);
    const std::vector<float>& gains = reading.gains()[static_cast<size_t>(d)];
    words.add(tokens, gains);
    if (d == 0) take_excerpt(tokens, gains, tokenizer, options.excerpt, use);
  }
  use.by_distance = words.by_distance();
  use.new_words = words.new_words();
  use.words = words.best(options.words);
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return use;
}

}  // namespace rondo::study
