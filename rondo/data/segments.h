// How language models read (models.md 2.7): each row of a batch reads one document in order,
// segment by segment, carrying its state from batch to batch; where a document ends the row takes
// the next one, and its state is reset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/data/documents.h"

namespace rondo {

// One segment for each row. Row r's tokens are [r * length, (r + 1) * length).
struct SegmentBatch {
  int64_t rows = 0;
  int64_t length = 0;
  std::vector<int64_t> tokens;  // [rows * length]; padding after a document's last token
  std::vector<int64_t> labels;  // [rows * length]; the next token of the same document, also where
                                // that lies in the next segment; -1 for a document's last token
                                // and for padding
  std::vector<uint8_t> reset;   // [rows]; 1: the segment begins a document
  std::vector<int64_t> document;  // [rows]; -1: the row is idle, all of it padding
  std::vector<int64_t> offset;    // [rows]; which token of the document the segment starts with
  int64_t scored = 0;             // labels that are not -1
  int64_t scored_by_all = 0;      // in the rows of all shards
};

struct SegmentOptions {
  int64_t rows = 1;
  int64_t length = 512;
  uint64_t seed = 1;
  bool shuffle = true;  // a new order each epoch, by (seed, epoch); else the corpus's own
  bool endless = true;  // epochs follow each other without gap; else one pass
  int64_t padding = kBytePadding;  // the token that pads
  // Shards read side by side, `rows` rows each: together what one reader of all the rows reads.
  Shard shard = {};
};

// Documents of one token are passed over: there is nothing to score in them. In an endless pass
// over fewer documents than rows, rows read documents of later epochs. Not thread-safe.
class SegmentReader {
 public:
  // `documents` must outlive the reader. Error{bad_input} if no document has two tokens,
  // or a batch would not fit into memory.
  SegmentReader(const Documents& documents, const SegmentOptions& options);

  // The next batch, into buffers that are used again. False, and `out` untouched, when a finite
  // pass is over.
  bool next(SegmentBatch& out);

  // Where the reader stands, as JSON of some ten bytes per row of all shards: the same in each.
  std::string position() const;

  // Goes where position() was taken: the next batch is the one that would have come then.
  // Error{bad_input}, and nothing changed, if it is of other documents or options (padding apart)
  // or is no position at all. With `other_rows` the number of rows of all shards may differ: rows
  // that are gone leave their documents, rows that are new take the next ones.
  void seek(const std::string& position, bool other_rows = false);

  // The epoch of the newest document begun, from 0.
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
