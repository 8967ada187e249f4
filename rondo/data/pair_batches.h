// How translation models read: batches of sentence pairs of like length, as many in each as a
// budget of tokens allows, padding included.
//
// An epoch is made so: pairs are sorted by the length of their longer side, in random order among
// equals; among these, runs of two batches' worth are sorted by which side is longer and by how
// much, so that neither side pads much; batches are cut off in that order; and come in random
// order. Lengths alone decide where batches end, so every epoch has equally many. All of it is a
// function of (seed, epoch), and is made anew wherever reading goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/data/parallel_text.h"

namespace rondo {

// Row r of the source is [r * source_length, (r + 1) * source_length), of target and labels
// accordingly.
struct PairBatch {
  int64_t rows = 0;
  int64_t source_length = 0;
  int64_t target_length = 0;
  std::vector<int64_t> source;  // [rows * source_length]; tokens, end token, padding
  std::vector<int64_t> target;  // [rows * target_length]; begin token, tokens, padding
  std::vector<int64_t> labels;  // [rows * target_length]; what follows each of `target`: the next
                                // token, then the end token; -1 where nothing does, and for padding
  std::vector<int64_t> pair;    // [rows]; index in the corpus
  int64_t source_tokens = 0;    // in `source` that are not padding
  int64_t target_tokens = 0;    // labels that are not -1
};

struct PairBatchOptions {
  // The most of rows * max(source_length, target_length), special tokens included. A single pair
  // that is longer makes a batch of its own.
  int64_t tokens = 4096;
  int64_t max_rows = 0;  // 0: as many as the tokens allow
  uint64_t seed = 1;
  bool shuffle = true;  // else the same batches each epoch, from short to long
  bool endless = true;  // epochs follow each other without gap; else one pass

  // Shards take turns: of every `size` batches, that of rank r gets the r-th. Endless passes only.
  Shard shard = {};

  int64_t source_padding = kBytePadding;
  int64_t target_padding = kBytePadding;
  int32_t source_end = -1;  // -1: no such token
  int32_t target_begin = -1;
  int32_t target_end = -1;

  void use_special_tokens(const SpecialTokens& source,
                          const SpecialTokens& target);  // sets the last five
};

// Every pair comes once in each epoch. Holds 8 bytes for each pair, and 16 for each batch. Not
// thread-safe.
class PairBatches {
 public:
  // `corpus` must outlive the reader. Reads all lengths; the first epoch is made by next().
  PairBatches(const ParallelCorpus& corpus, const PairBatchOptions& options);

  // The next batch, into buffers that are used again: once they are as large as they ever need to
  // be, which is after the first call, nothing is allocated. False, and `out` untouched, when a
  // finite pass is over.
  bool next(PairBatch& out);

  // Where the reader stands, as a line of JSON: the same in all shards after equally many calls of
  // next().
  std::string position() const;

  // Goes where position() was taken: the next batch is the one that would have come then.
  // Error{bad_input}, and nothing changed, if it is of other pairs or options (padding apart) or is
  // no position at all.
  void seek(const std::string& position);

  // Of the batch last given (or of the place gone to), from 0.
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
  int64_t batch_ = 0;                 // batches of the epoch given so far
  int64_t planned_ = -1;              // the epoch that order_ and batch_order_ are of
  std::vector<int64_t> bucket_ends_;  // [longest + 1]; where the pairs of each length end
  std::vector<int64_t> cursors_;      // [longest + 1]; while pairs are placed
  std::vector<int64_t> begins_;       // [batches + 1]; where each batch begins in order_
  std::vector<int64_t> order_;        // [pairs]; index, and above it by how much a side is longer
  std::vector<int64_t> batch_order_;  // [batches]
  std::vector<Ranked> run_;
  size_t most_rows_ = 0;    // of any batch
  size_t most_tokens_ = 0;  // of either side of any batch
};

}  // namespace rondo
