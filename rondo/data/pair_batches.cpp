// Batches of sentence pairs.
#include "rondo/data/pair_batches.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "rondo/base/random.h"
#include "rondo/base/require.h"
#include "rondo/data/data_position.h"

namespace rondo {
namespace {

constexpr const char* kPairsFormat = "rondo pair batches 1";

// This many batches' worth of pairs of one length are sorted together by length difference. More
// would reduce padding, but group the same pairs in every epoch.
constexpr int64_t kRunBatches = 2;

// A word of order_: the pair's index in the low bits, source length minus target length above.
constexpr int kIndexBits = 40;
constexpr int64_t kIndexMask = (int64_t{1} << kIndexBits) - 1;
constexpr int64_t kMostDifference = (int64_t{1} << (62 - kIndexBits)) - 1;  // clamped beyond

int64_t pack_pair(int64_t index, int64_t difference) {
  return std::clamp(difference, -kMostDifference, kMostDifference) * (kIndexMask + 1) + index;
}
int64_t index_of(int64_t word) { return word & kIndexMask; }
int64_t difference_of(int64_t word) { return (word - index_of(word)) / (kIndexMask + 1); }

void shuffle_range(int64_t* begin, int64_t count, CounterRandom& random) {
  for (int64_t i = count; i > 1; --i) {
    std::swap(begin[i - 1], begin[random.below(static_cast<uint64_t>(i))]);
  }
}

// What a position must match.
nlohmann::json pairs_read(const ParallelCorpus& corpus, const PairBatchOptions& options) {
  return {
      {"format", kPairsFormat},
      {"pairs", corpus.fingerprint()},
      {"tokens", options.tokens},
      {"max_rows", options.max_rows},
      {"seed", options.seed},
      {"shuffle", options.shuffle},
      {"endless", options.endless},
      {"source_end", options.source_end},
      {"target_begin", options.target_begin},
      {"target_end", options.target_end},
  };
}

}  // namespace

void PairBatchOptions::use_special_tokens(const SpecialTokens& source,
                                          const SpecialTokens& target) {
  source_padding = source.padding;
  target_padding = target.padding;
  source_end = source.end;
  target_begin = target.begin;
  target_end = target.end;
}

PairBatches::PairBatches(const ParallelCorpus& corpus, const PairBatchOptions& options)
    : corpus_(corpus), options_(options) {
  require(options.tokens >= 1, "batches: expected at least 1 token, got {}", options.tokens);
  require(options.max_rows >= 0, "batches: expected 0 or more rows, got {}", options.max_rows);
  require(options.shard.size == 1 || options.endless,
          "batches: expected an endless pass with {} shards", options.shard.size);
  require(corpus.count() <= kIndexMask, "batches: expected at most {} pairs, got {}", kIndexMask,
          corpus.count());
  for (int64_t i = 0; i < corpus.count(); ++i) {
    const Lengths pair = lengths(i);
    const auto length = static_cast<size_t>(std::max(pair.source, pair.target));
    if (length >= bucket_ends_.size()) {
      bucket_ends_.resize(length + 1);
    }
    ++bucket_ends_[length];
  }
  std::partial_sum(bucket_ends_.begin(), bucket_ends_.end(), bucket_ends_.begin());
  cut_batches();
}

// Special tokens included.
PairBatches::Lengths PairBatches::lengths(int64_t pair) const {
  return {corpus_.source(pair).size() + (options_.source_end >= 0 ? 1 : 0),
          corpus_.target(pair).size() + (options_.target_begin >= 0 ? 1 : 0)};
}

// Batches are cut from short to long, so the last pair of each is its longest.
void PairBatches::cut_batches() {
  begins_ = {0};
  int64_t rows = 0;
  int64_t before = 0;  // the length of the previous pair
  const auto end_batch = [&] {
    begins_.push_back(begins_.back() + rows);
    most_rows_ = std::max(most_rows_, static_cast<size_t>(rows));
    most_tokens_ = std::max(most_tokens_, static_cast<size_t>(rows * before));
    rows = 0;
  };
  int64_t place = 0;
  for (size_t length = 1; length < bucket_ends_.size(); ++length) {
    const auto tokens = static_cast<int64_t>(length);
    for (; place < bucket_ends_[length]; ++place) {
      const bool full = rows == options_.max_rows || rows >= options_.tokens / tokens;
      if (rows > 0 && full) {
        end_batch();
      }
      ++rows;
      before = tokens;
    }
  }
  end_batch();
}

void PairBatches::plan_epoch() {
  place_pairs();
  bool ascending = true;
  for (size_t length = 1; length < bucket_ends_.size(); ++length) {
    sort_bucket(static_cast<int64_t>(length), ascending);
  }
  batch_order_.resize(begins_.size() - 1);
  std::iota(batch_order_.begin(), batch_order_.end(), int64_t{0});
  if (options_.shuffle) {
    CounterRandom random(options_.seed, "pair batches", static_cast<uint64_t>(epoch_));
    shuffle_range(batch_order_.data(), batches_per_epoch(), random);
  }
  planned_ = epoch_;
}

// Puts all pairs into buckets by length, each bucket in corpus order or shuffled. (Shuffling all
// pairs and sorting them stably would be equivalent, but with scattered memory access.)
void PairBatches::place_pairs() {
  order_.resize(static_cast<size_t>(corpus_.count()));
  cursors_ = bucket_ends_;
  for (int64_t i = corpus_.count(); i-- > 0;) {
    const Lengths pair = lengths(i);
    int64_t& cursor = cursors_[static_cast<size_t>(std::max(pair.source, pair.target))];
    order_[static_cast<size_t>(--cursor)] = pack_pair(i, pair.source - pair.target);
  }
  if (options_.shuffle) {
    CounterRandom random(options_.seed, "pairs", static_cast<uint64_t>(epoch_));
    int64_t begin = 0;
    for (const int64_t end : bucket_ends_) {
      shuffle_range(order_.data() + begin, end - begin, random);
      begin = end;
    }
  }
}

// Sorts the pairs of one length, in runs, by length difference; every other run is descending, so
// that where two runs share a batch the same side is longer.
void PairBatches::sort_bucket(int64_t length, bool& ascending) {
  const int64_t begin = bucket_ends_[static_cast<size_t>(length) - 1];
  const int64_t count = bucket_ends_[static_cast<size_t>(length)] - begin;
  if (count == 0) {
    return;
  }
  int64_t rows = std::max<int64_t>(options_.tokens / length, 1);
  rows = options_.max_rows > 0 ? std::min(rows, options_.max_rows) : rows;
  const int64_t run_size = kRunBatches * rows;
  const int64_t runs =
      options_.shuffle ? std::max<int64_t>((count + run_size / 2) / run_size, 1) : 1;
  int64_t done = 0;
  for (int64_t run = 1; run <= runs; ++run) {
    const int64_t size = (count - done) / (runs - run + 1);
    int64_t* words = order_.data() + begin + done;
    run_.clear();
    for (int64_t i = 0; i < size; ++i) {
      const int64_t difference = difference_of(words[i]);
      run_.push_back({(ascending ? difference : -difference) * (kIndexMask + 1) + i, words[i]});
    }
    std::sort(run_.begin(), run_.end(),
              [](const Ranked& a, const Ranked& b) { return a.key < b.key; });
    for (int64_t i = 0; i < size; ++i) {
      words[i] = run_[static_cast<size_t>(i)].word;
    }
    done += size;
    ascending = !ascending;
  }
}

// Advances as this many calls of next() would.
void PairBatches::pass_over(int64_t batches) {
  batch_ += batches;
  while (batch_ > batches_per_epoch()) {
    batch_ -= batches_per_epoch();
    ++epoch_;
  }
}

bool PairBatches::next(PairBatch& out) {
  corpus_.require_whole();
  pass_over(options_.shard.rank);
  if (batch_ == batches_per_epoch()) {
    if (!options_.endless) {
      return false;
    }
    ++epoch_;
    batch_ = 0;
  }
  if (planned_ != epoch_) {
    plan_epoch();
  }
  const auto which = static_cast<size_t>(batch_order_[static_cast<size_t>(batch_++)]);
  const int64_t begin = begins_[which];
  out.rows = begins_[which + 1] - begin;
  out.source_length = 0;
  out.target_length = 0;
  out.pair.reserve(most_rows_);
  out.pair.clear();
  for (int64_t row = 0; row < out.rows; ++row) {
    out.pair.push_back(index_of(order_[static_cast<size_t>(begin + row)]));
    const Lengths pair = lengths(out.pair.back());
    out.source_length = std::max(out.source_length, pair.source);
    out.target_length = std::max(out.target_length, pair.target);
  }
  for (std::vector<int64_t>* cells : {&out.source, &out.target, &out.labels}) {
    cells->reserve(most_tokens_);
  }
  out.source.assign(static_cast<size_t>(out.rows * out.source_length), options_.source_padding);
  out.target.assign(static_cast<size_t>(out.rows * out.target_length), options_.target_padding);
  out.labels.assign(static_cast<size_t>(out.rows * out.target_length), -1);
  out.source_tokens = 0;
  out.target_tokens = 0;
  for (int64_t row = 0; row < out.rows; ++row) {
    fill(row, out.pair[static_cast<size_t>(row)], out);
  }
  pass_over(options_.shard.size - 1 - options_.shard.rank);
  return true;
}

void PairBatches::fill(int64_t row, int64_t pair, PairBatch& out) const {
  const TokenSpan source = corpus_.source(pair);
  int64_t* at = out.source.data() + row * out.source_length;
  source.copy_to(at);
  if (options_.source_end >= 0) {
    at[source.size()] = options_.source_end;
  }
  out.source_tokens += lengths(pair).source;

  const TokenSpan target = corpus_.target(pair);
  at = out.target.data() + row * out.target_length;
  const int64_t length = lengths(pair).target;
  target.copy_to(at + length - target.size());
  if (options_.target_begin >= 0) {
    at[0] = options_.target_begin;
  }
  int64_t* labels = out.labels.data() + row * out.target_length;
  std::copy_n(at + 1, length - 1, labels);
  if (options_.target_end >= 0) {
    labels[length - 1] = options_.target_end;
  }
  out.target_tokens += length - (options_.target_end >= 0 ? 0 : 1);
}

std::string PairBatches::position() const {
  nlohmann::json json = pairs_read(corpus_, options_);
  json["epoch"] = epoch_;
  json["batch"] = batch_;
  return json.dump();
}

void PairBatches::seek(const std::string& position) {
  const nlohmann::json json = parse_position(position, pairs_read(corpus_, options_));
  const int64_t last = options_.endless ? INT64_MAX - 1 : 0;
  const int64_t epoch = whole_number(position_value(json, "epoch"), 0, last);
  batch_ = whole_number(position_value(json, "batch"), 0, batches_per_epoch());
  epoch_ = epoch;
}

}  // namespace rondo
