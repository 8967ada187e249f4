// Batches for language models (models.md 2.7): each row of a batch processes one document in order,
// segment by segment, carrying its state from batch to batch. At the end of a document the row
// takes the next one and its state is reset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/data/documents.h"

namespace rondo {

// One segment per row. Row r's tokens are [r * length, (r + 1) * length).
struct SegmentBatch {
  int64_t rows = 0;
  int64_t length = 0;
  std::vector<int64_t> tokens;  // [rows * length]; padding after a document's last token
  std::vector<int64_t> labels;  // [rows * length]; the next token of the same document, even if it
                                // is in the next segment; -1 for a document's last token and for
                                // padding
  std::vector<uint8_t> reset;   // [rows]; 1: the segment starts a document
  std::vector<int64_t> document;  // [rows]; -1: the row is idle, all padding
  std::vector<int64_t> offset;    // [rows]; index in the document of the segment's first token
  int64_t scored = 0;             // labels that are not -1
  int64_t scored_by_all = 0;      // over the rows of all shards
};

struct SegmentOptions {
  int64_t rows = 1;
  int64_t length = 512;
  uint64_t seed = 1;
  bool shuffle = true;  // a new order each epoch, by (seed, epoch); otherwise corpus order
  bool endless = true;  // epochs follow each other without a gap; otherwise a single pass
  int64_t padding = kBytePadding;  // the padding token
  // Shards with `rows` rows each, read in parallel: together they read what one reader with all the
  // rows would.
  Shard shard = {};
};

// Documents of one token are skipped: they have nothing to score. In an endless pass over fewer
// documents than rows, some rows read documents of later epochs. Not thread-safe.
class SegmentReader {
 public:
  // `documents` must outlive the reader. Error{bad_input} if no document has two tokens or a batch
  // would not fit into memory.
  SegmentReader(const Documents& documents, const SegmentOptions& options);

  // The next batch, into reused buffers. Returns false, with `out` untouched, at the end of a
  // finite pass.
  bool next(SegmentBatch& out);

  // The reader's position, as JSON of about ten bytes per row of all shards; the same in each
  // shard.
  std::string position() const;

  // Restores a position(): the next batch is the one that would have followed there.
  // Error{bad_input}, with nothing changed, if the position is invalid or belongs to other
  // documents or options (padding aside). With `other_rows` the total number of rows may differ:
  // removed rows abandon their documents, new rows take the next ones.
  void seek(const std::string& position, bool other_rows = false);

  // The epoch of the most recently started document, from 0.
  int64_t epoch() const { return epoch_; }

 private:
  struct Row {
    int64_t document = -1;  // -1: needs one
    int64_t offset = 0;     // the next token to read
  };
  void start_epoch(int64_t epoch);
  bool take_document(Row& row);
  void fill(int64_t row, SegmentBatch& out);
  int64_t all_rows() const { return options_.rows * options_.shard.size; }
  int64_t first_row() const { return options_.rows * options_.shard.rank; }

  const Documents& documents_;
  SegmentOptions options_;
  int64_t epoch_ = 0;
  int64_t cursor_ = 0;            // documents of the epoch taken so far
  std::vector<int64_t> order_;    // of the epoch
  std::vector<Row> rows_;         // of all shards
  std::vector<int64_t> scratch_;  // [length + 1]
};

}  // namespace rondo
