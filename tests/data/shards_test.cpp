// Readers of several processes: together they read what a single reader reads, each row once, and
// their positions are the same.
#include <gtest/gtest.h>

#include <filesystem>

#include "rondo/base/log.h"
#include "rondo/data/pair_batches.h"
#include "rondo/data/segments.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

using testing::random_bytes;
using testing::spill;
using testing::TempDir;

class TextFolder {
 public:
  TextFolder() {
    init_log(-2);
    std::filesystem::create_directory(folder_.file("source"));
    for (uint64_t i = 0; i < 17; ++i) {
      spill(folder_.file("source/" + std::to_string(100 + i)), random_bytes(3 + 13 * i % 70, i));
    }
    documents = std::make_unique<Documents>(
        Documents::open({folder_.file("source"), folder_.file("cache")}, *make_tokenizer("bytes")));
    std::string pairs;
    for (uint64_t i = 0; i < 101; ++i) {
      pairs += random_bytes(1 + i % 19, i, "abc") + "\t" + random_bytes(1 + i % 7, i, "abc") + "\n";
    }
    spill(folder_.file("pairs.tsv"), pairs);
    ParallelOptions options;
    options.files.source = folder_.file("pairs.tsv");
    options.cache_folder = folder_.file("cache");
    options.threads = 1;
    const auto bytes = make_tokenizer("bytes");
    corpus = std::make_unique<ParallelCorpus>(ParallelCorpus::open(options, *bytes, *bytes));
    init_log(0);
  }
  std::unique_ptr<Documents> documents;
  std::unique_ptr<ParallelCorpus> corpus;

 private:
  TempDir folder_;
};

SegmentOptions segments(int64_t rows, Shard shard, bool endless) {
  SegmentOptions o;
  o.rows = rows;
  o.length = 8;
  o.endless = endless;
  o.shard = shard;
  return o;
}

TEST(Shards, ReadTheRowsOfOneReader) {
  const TextFolder folder;
  for (const bool endless : {true, false}) {
    for (const int64_t size : {2, 3, 6}) {
      const int64_t rows = 6 / size;
      SegmentReader whole(*folder.documents, segments(6, {}, endless));
      std::vector<SegmentReader> parts;
      for (int64_t rank = 0; rank < size; ++rank) {
        parts.emplace_back(*folder.documents, segments(rows, {rank, size}, endless));
      }
      SegmentBatch all;
      SegmentBatch part;
      bool more = true;
      for (int step = 0; step < 40 && more; ++step) {
        more = whole.next(all);
        for (int64_t rank = 0; rank < size; ++rank) {
          auto& reader = parts[static_cast<size_t>(rank)];
          ASSERT_EQ(reader.next(part), more);
          ASSERT_EQ(reader.position(), whole.position());
          if (!more) continue;
          const auto cells = rank * rows * 8;
          EXPECT_TRUE(
              std::equal(part.tokens.begin(), part.tokens.end(), all.tokens.begin() + cells));
          EXPECT_TRUE(
              std::equal(part.labels.begin(), part.labels.end(), all.labels.begin() + cells));
          EXPECT_TRUE(
              std::equal(part.reset.begin(), part.reset.end(), all.reset.begin() + rank * rows));
          EXPECT_EQ(part.scored_by_all, all.scored);
        }
      }
      EXPECT_EQ(more, endless);
    }
  }
}

TEST(Shards, GoOnWithAnotherNumberOfRows) {
  const TextFolder folder;
  SegmentReader reader(*folder.documents, segments(3, {1, 2}, true));
  SegmentBatch batch;
  for (int step = 0; step < 5; ++step) reader.next(batch);
  const std::string position = reader.position();
  SegmentReader fewer(*folder.documents, segments(4, {}, true));
  EXPECT_THROW(fewer.seek(position), Error);
  fewer.seek(position, /*other_rows=*/true);
  reader.next(batch);
  SegmentBatch other;
  fewer.next(other);
  EXPECT_EQ(other.document[3], batch.document[0]) << "row 3 of 6 goes on as row 3 of 4";
  EXPECT_EQ(other.offset[3], batch.offset[0]);
  SegmentReader more(*folder.documents, segments(8, {}, true));
  more.seek(position, /*other_rows=*/true);
  more.next(other);
  EXPECT_EQ(other.document[5], batch.document[2]);
  EXPECT_EQ(other.reset[6], 1);
  EXPECT_EQ(other.reset[7], 1);
}

TEST(Shards, TakeTurnsInBatchesOfPairs) {
  const TextFolder folder;
  PairBatchOptions options;
  options.tokens = 60;
  for (const int64_t size : {2, 3, 5}) {
    options.shard = {};
    PairBatches whole(*folder.corpus, options);
    std::vector<PairBatches> parts;
    for (int64_t rank = 0; rank < size; ++rank) {
      options.shard = {rank, size};
      parts.emplace_back(*folder.corpus, options);
    }
    PairBatch all;
    PairBatch part;
    for (int64_t step = 0; step < 2 * whole.batches_per_epoch(); ++step) {  // over several epochs
      for (PairBatches& reader : parts) {
        ASSERT_TRUE(whole.next(all));
        ASSERT_TRUE(reader.next(part));
        EXPECT_EQ(part.pair, all.pair);
        EXPECT_EQ(part.source, all.source);
      }
      for (PairBatches& reader : parts) ASSERT_EQ(reader.position(), whole.position());
    }
    PairBatches moved(*folder.corpus, options);
    moved.seek(whole.position());
    ASSERT_TRUE(moved.next(part));
    for (int64_t rank = 0; rank < size; ++rank) whole.next(all);
    EXPECT_EQ(part.pair, all.pair) << "that of the last rank";
  }
}

}  // namespace
}  // namespace rondo
