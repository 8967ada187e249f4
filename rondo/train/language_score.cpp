// Scoring documents.
#include "rondo/train/language_score.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/model/recent_tokens.h"

namespace rondo {
namespace {

size_t position_bucket(int64_t position) {
  size_t k = 0;
  while (position >= 2) {
    position >>= 1;
    ++k;
  }
  return k;
}

// Nats and tokens by document and block within it.
using Blocks = std::map<std::pair<int64_t, int64_t>, LanguageScore::Bucket>;

// Adds one batch's losses [B, ≥ scored] to the score.
void add_batch(const SegmentBatch& batch, const Documents& documents, const Tensor& losses,
               LanguageScore& score, Blocks* blocks) {
  const auto* nats = losses.data_ptr<float>();
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t scored = 0;
    const int64_t document = batch.document[static_cast<size_t>(row)];
    for (int64_t t = 0; t < losses.size(1); ++t) {
      if (batch.labels[static_cast<size_t>(row * batch.length + t)] < 0) continue;
      const int64_t at = row * losses.size(1) + t;
      const int64_t position = batch.offset[static_cast<size_t>(row)] + t + 1;
      const size_t bucket = position_bucket(position);
      if (score.by_position.size() <= bucket) score.by_position.resize(bucket + 1);
      score.by_position[bucket].nats += nats[at];
      ++score.by_position[bucket].tokens;
      score.nats += nats[at];
      ++scored;
      if (blocks == nullptr) continue;
      LanguageScore::Bucket& block = (*blocks)[{document, position / kItemTokens}];
      block.nats += nats[at];
      ++block.tokens;
    }
    if (scored == 0) continue;
    const auto& d = documents.document(document);
    const double share = static_cast<double>(scored) / static_cast<double>(d.tokens - 1);
    score.tokens += scored;
    score.bytes += share * static_cast<double>(d.bytes);
    score.words += share * static_cast<double>(d.words);
  }
}

void give_items(const Blocks& blocks, const Documents& documents, TestItems& items) {
  items.task = "lm";
  items.test = documents.checksum();
  for (const auto& [place, block] : blocks) {
    const auto& d = documents.document(place.first);
    const double share = static_cast<double>(block.tokens) / static_cast<double>(d.tokens - 1);
    items.add_text(block.nats, static_cast<double>(block.tokens),
                   share * static_cast<double>(d.bytes), share * static_cast<double>(d.words));
  }
}

// Evaluations during training show progress only if they take long.
ProgressOptions shown_progress(const ScoreOptions& options) {
  ProgressOptions shown;
  shown.delay = options.progress ? 0 : 2;
  shown.transient = !options.progress;
  return shown;
}

// The tokens of a lone row that are not padding: the state after them is the document's.
int64_t real_tokens(const SegmentBatch& batch, const Documents& documents) {
  const int64_t left = documents.document(batch.document[0]).tokens - batch.offset[0];
  return std::min(batch.length, left);
}

}  // namespace

double LanguageScore::bits_per_token() const { return nats / M_LN2 / static_cast<double>(tokens); }
double LanguageScore::bits_per_byte() const { return nats / M_LN2 / bytes; }
double LanguageScore::word_perplexity() const { return std::exp(nats / words); }

SegmentTensors::SegmentTensors(const SegmentBatch& batch, at::Device device) {
  const auto matrix = [&](const std::vector<int64_t>& values) {
    return torch::from_blob(const_cast<int64_t*>(values.data()), {batch.rows, batch.length},
                            at::kLong)
        .clone()
        .to(device);
  };
  tokens = matrix(batch.tokens);
  labels = matrix(batch.labels);
  reset = torch::from_blob(const_cast<uint8_t*>(batch.reset.data()), {batch.rows}, at::kByte)
              .to(at::kBool);
}

void SegmentTensors::shorten(int64_t length) {
  tokens = tokens.narrow(1, 0, length);
  labels = labels.narrow(1, 0, length);
}

LanguageScore score_documents(LanguageModel& model, const Documents& documents,
                              const ScoreOptions& options, State* state) {
  require(state == nullptr || options.rows == 1,
          "scoring: a state belongs to one document: expected 1 row, got {}", options.rows);
  const at::NoGradGuard no_grad;
  const auto started = std::chrono::steady_clock::now();
  SegmentOptions segments;
  segments.rows = options.rows;
  segments.length = options.length;
  segments.shuffle = false;
  segments.endless = false;
  segments.padding = 0;  // never scored; any valid token will do
  segments.shard = options.shard;
  SegmentReader reader(documents, segments);
  State own;
  State& carried = state != nullptr ? *state : own;
  bool keeps_first = state != nullptr && !state->empty();
  RecentTokens recent(carried);
  carried = carried.without("logits").without(RecentTokens::kName);
  LanguageScore score;
  Blocks blocks;
  SegmentBatch batch;
  int64_t scored = 0;  // by all shards
  Tensor last;         // logits after the last token [1, V]
  const int64_t total = options.max_tokens > 0 ? std::min(options.max_tokens, documents.tokens())
                                               : documents.tokens();
  Progress progress(options.progress ? "eval" : "evaluating", total, shown_progress(options));
  while (reader.next(batch)) {
    if (options.stop && options.stop()) break;
    SegmentTensors t(batch, model.device());
    if (batch.rows == 1 && batch.document[0] >= 0) t.shorten(real_tokens(batch, documents));
    // A state passed by the caller is the context of the first document.
    if (!keeps_first) carried = carried.reset(t.reset);
    if (!keeps_first && batch.reset[0] != 0) recent.clear();
    keeps_first = false;
    const Tensor logits = model.forward_tokens(t.tokens, carried, Scope(), options.zero_states);
    const Tensor losses = at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat),
                                                 t.labels.flatten(), {}, at::Reduction::None,
                                                 /*ignore_index=*/-1)
                              .to(at::kCPU);
    add_batch(batch, documents, losses.view(t.labels.sizes()), score,
              options.items != nullptr ? &blocks : nullptr);
    if (state != nullptr) {
      last = logits.select(1, logits.size(1) - 1);
      for (int64_t i = 0; i < t.tokens.size(1); ++i) recent.add(batch.tokens[size_t(i)]);
    }
    progress.update(options.progress ? score.tokens : scored);
    scored += batch.scored_by_all;
    if (options.max_tokens > 0 && scored >= options.max_tokens) break;
  }
  if (last.defined()) {
    state->set("logits", last.clone());
    recent.keep_in(*state);
  }
  if (options.items != nullptr) give_items(blocks, documents, *options.items);
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return score;
}

}  // namespace rondo
