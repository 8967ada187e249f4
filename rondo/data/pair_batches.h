// Batches for translation models: sentence pairs of similar length, as many per batch as a token
// budget allows, padding included.
//
// To form an epoch, pairs are sorted by the length of their longer side, in random order among
// equals; within these, runs of two batches' worth are sorted by which side is longer and by how
// much, so that neither side needs much padding. Batches are cut in that order, then shuffled.
// Batch boundaries depend on lengths only, so every epoch has the same number of batches. All of
// this is a function of (seed, epoch) and is recomputed on resume.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/data/parallel_text.h"

namespace rondo {

// Row r of `source` is [r * source_length, (r + 1) * source_length); `target` and `labels`
// likewise.
struct PairBatch {
  int64_t rows = 0;
  int64_t source_length = 0;
  int64_t target_length = 0;
  std::vector<int64_t> source;  // [rows * source_length]; tokens, end token, padding
  std::vector<int64_t> target;  // [rows * target_length]; begin token, tokens, padding
  std::vector<int64_t> labels;  // [rows * target_length]; what follows each token of `target`: the
                                // next token, then the end token; -1 if nothing does, and for
                                // padding
  std::vector<int64_t> pair;    // [rows]; index in the corpus
  int64_t source_tokens = 0;    // in `source`, excluding padding
  int64_t target_tokens = 0;    // labels that are not -1
};

struct PairBatchOptions {
  // Upper bound on rows * max(source_length, target_length), special tokens included. A single pair
  // that exceeds it gets a batch of its own.
  int64_t tokens = 4096;
  int64_t max_rows = 0;  // 0: as many as `tokens` allows
  uint64_t seed = 1;
  bool shuffle = true;  // otherwise the same batches every epoch, short to long
  bool endless = true;  // epochs follow each other without a gap; otherwise a single pass

  // Shards take turns: of every `size` batches, rank r gets the r-th. Endless passes only.
  Shard shard = {};

  int64_t source_padding = kBytePadding;
  int64_t target_padding = kBytePadding;
  int32_t source_end = -1;  // -1: no such token
  int32_t target_begin = -1;
  int32_t target_end = -1;

  void use_special_tokens(const SpecialTokens& source,
                          const SpecialTokens& target);  // sets the last five
};

// Every pair occurs once per epoch. Takes 8 bytes per pair and 16 per batch. Not thread-safe.
class PairBatches {
 public:
  // `corpus` must outlive the reader. Reads all lengths; next() plans the first epoch.
  PairBatches(const ParallelCorpus& corpus, const PairBatchOptions& options);

  // The next batch, into reused buffers: they reach their final size in the first call, after which
  // nothing is allocated. Returns false, with `out` untouched, at the end of a finite pass.
  bool next(PairBatch& out);

  // The reader's position, as a line of JSON: the same in all shards after the same number of
  // next() calls.
  std::string position() const;

  // Restores a position(): the next batch is the one that would have followed there.
  // Error{bad_input}, with nothing changed, if the position is invalid or belongs to other pairs or
  // options (padding aside).
  void seek(const std::string& position);

  // Of the last batch returned (or of the position restored), from 0.
  int64_t epoch() const { return epoch_; }
  int64_t batches_per_epoch() const { return static_cast<int64_t>(begins_.size()) - 1; }

 private:
  struct Lengths {
    int64_t source;
    int64_t target;
  };
  // For sorting a run.
  struct Ranked {
    int64_t key;
    int64_t word;
  };
  Lengths lengths(int64_t pair) const;
  void pass_over(int64_t batches);
  void cut_batches();
  void plan_epoch();
  void place_pairs();
  void sort_bucket(int64_t length, bool& ascending);
  void fill(int64_t row, int64_t pair, PairBatch& out) const;

  const ParallelCorpus& corpus_;
  PairBatchOptions options_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;                 // batches of the epoch returned so far
  int64_t planned_ = -1;              // the epoch that order_ and batch_order_ belong to
  std::vector<int64_t> bucket_ends_;  // [longest + 1]; where the pairs of each length end
  std::vector<int64_t> cursors_;      // [longest + 1]; used while placing pairs
  std::vector<int64_t> begins_;       // [batches + 1]; where each batch begins in order_
  std::vector<int64_t> order_;  // [pairs]; index, with the length difference in the bits above
  std::vector<int64_t> batch_order_;  // [batches]
  std::vector<Ranked> run_;
  size_t most_rows_ = 0;    // in any batch
  size_t most_tokens_ = 0;  // on either side of any batch
};

}  // namespace rondo
