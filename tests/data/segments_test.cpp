// SegmentReader against a naive reader that holds everything in memory; exact continuation from
// every position; every token but each document's first is scored once.
#include "rondo/data/segments.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "rondo/base/log.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::random_bytes;
using testing::spill;
using testing::TempDir;

// Documents of the given lengths (0: an empty file), of random bytes.
class Corpus {
 public:
  Corpus(const std::vector<int64_t>& lengths, uint64_t seed) : documents_(build(lengths, seed)) {}
  const Documents& documents() const { return documents_; }
  const std::vector<std::string>& texts() const { return texts_; }  // without the empty ones

 private:
  Documents build(const std::vector<int64_t>& lengths, uint64_t seed) {
    init_log(-2);
    const std::string source = folder_.file("source");
    fs::create_directory(source);
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::string text = random_bytes(static_cast<size_t>(lengths[i]), seed * 1000 + i);
      spill(source + "/" + std::to_string(1000 + i), text);
      if (!text.empty()) {
        texts_.push_back(std::move(text));
      }
    }
    Documents documents =
        Documents::open({source, folder_.file("cache")}, *make_tokenizer("bytes"));
    init_log(0);
    return documents;
  }

  TempDir folder_;
  std::vector<std::string> texts_;
  Documents documents_;
};

// A second implementation of the rules, as plain as possible: a queue of documents, and for each
// row the list of segments still to be returned.
class NaiveReader {
 public:
  NaiveReader(const std::vector<std::string>& texts, const SegmentOptions& options)
      : texts_(texts), options_(options), rows_(static_cast<size_t>(options.rows)) {}

  bool next(SegmentBatch& out) {
    out = {};
    out.rows = options_.rows;
    out.length = options_.length;
    bool any = false;
    for (std::deque<Segment>& row : rows_) {
      if (row.empty()) {
        refill(row);
      }
      Segment segment;
      segment.tokens.assign(static_cast<size_t>(options_.length), options_.padding);
      segment.labels.assign(static_cast<size_t>(options_.length), -1);
      if (!row.empty()) {
        segment = row.front();
        row.pop_front();
        any = true;
      }
      out.tokens.insert(out.tokens.end(), segment.tokens.begin(), segment.tokens.end());
      out.labels.insert(out.labels.end(), segment.labels.begin(), segment.labels.end());
      out.document.push_back(segment.document);
      out.offset.push_back(segment.offset);
      out.reset.push_back(segment.document >= 0 && segment.offset == 0 ? 1 : 0);
    }
    for (const int64_t label : out.labels) {
      out.scored += label >= 0 ? 1 : 0;
    }
    return any;
  }

 private:
  struct Segment {
    std::vector<int64_t> tokens;
    std::vector<int64_t> labels;
    int64_t document = -1;
    int64_t offset = 0;
  };

  void refill(std::deque<Segment>& row) {
    while (queue_.empty()) {
      if (epochs_ > 0 && !options_.endless) {
        return;
      }
      std::vector<int64_t> order(texts_.size());
      std::iota(order.begin(), order.end(), 0);
      if (options_.shuffle) {
        order = counter_permutation(static_cast<int64_t>(texts_.size()), options_.seed, "documents",
                                    static_cast<uint64_t>(epochs_));
      }
      ++epochs_;
      for (const int64_t document : order) {
        if (texts_[static_cast<size_t>(document)].size() >= 2) {
          queue_.push_back(document);
        }
      }
    }
    const int64_t document = queue_.front();
    queue_.pop_front();
    const std::string& text = texts_[static_cast<size_t>(document)];
    const auto length = static_cast<size_t>(options_.length);
    for (size_t begin = 0; begin < text.size(); begin += length) {
      Segment segment;
      segment.document = document;
      segment.offset = static_cast<int64_t>(begin);
      for (size_t i = begin; i < begin + length; ++i) {
        segment.tokens.push_back(i < text.size() ? static_cast<uint8_t>(text[i])
                                                 : options_.padding);
        segment.labels.push_back(i + 1 < text.size() ? static_cast<uint8_t>(text[i + 1]) : -1);
      }
      row.push_back(segment);
    }
  }

  const std::vector<std::string>& texts_;
  SegmentOptions options_;
  std::vector<std::deque<Segment>> rows_;
  std::deque<int64_t> queue_;
  int64_t epochs_ = 0;
};

void expect_equal(const SegmentBatch& a, const SegmentBatch& b, const std::string& what) {
  ASSERT_EQ(a.rows, b.rows) << what;
  ASSERT_EQ(a.length, b.length) << what;
  ASSERT_EQ(a.document, b.document) << what;
  ASSERT_EQ(a.offset, b.offset) << what;
  ASSERT_EQ(a.reset, b.reset) << what;
  ASSERT_EQ(a.tokens, b.tokens) << what;
  ASSERT_EQ(a.labels, b.labels) << what;
  ASSERT_EQ(a.scored, b.scored) << what;
}

constexpr int64_t kLength = 8;
const std::vector<int64_t> kLengths = {0, 1, 2, 7, 8, 9, 15, 16, 17, 1, 0, 64, 65, 3, 100, 24};

struct Case {
  SegmentOptions options;
  std::string name;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int64_t rows = 1; rows <= 5; ++rows) {
    for (const bool shuffle : {false, true}) {
      for (const bool endless : {false, true}) {
        SegmentOptions options;
        options.rows = rows;
        options.length = kLength;
        options.seed = static_cast<uint64_t>(rows) * 7;
        options.shuffle = shuffle;
        options.endless = endless;
        cases.push_back({options, std::to_string(rows) + " rows, shuffle " +
                                      std::to_string(shuffle) + ", endless " +
                                      std::to_string(endless)});
      }
    }
  }
  return cases;
}

TEST(Segments, EqualTheNaiveReader) {
  CounterRandom random(1, "lengths");
  std::vector<std::vector<int64_t>> all_lengths = {kLengths, {2}, {1, 1, 17}, {100, 3}};
  for (int i = 0; i < 3; ++i) {
    std::vector<int64_t> lengths(1 + random.below(12));
    for (int64_t& length : lengths) {
      length = static_cast<int64_t>(random.below(5 * kLength));
    }
    lengths.push_back(30);
    all_lengths.push_back(lengths);
  }
  for (size_t i = 0; i < all_lengths.size(); ++i) {
    const Corpus corpus(all_lengths[i], i);
    for (const Case& one : all_cases()) {
      SegmentReader reader(corpus.documents(), one.options);
      NaiveReader naive(corpus.texts(), one.options);
      SegmentBatch got;
      SegmentBatch expected;
      for (int step = 0; step < 120; ++step) {
        const std::string what = one.name + ", step " + std::to_string(step);
        const bool more = naive.next(expected);
        ASSERT_EQ(reader.next(got), more) << what;
        if (!more) {
          break;
        }
        expect_equal(got, expected, what);
      }
    }
  }
}

TEST(Segments, ContinueExactlyFromEveryPosition) {
  const Corpus corpus(kLengths, 3);
  for (const Case& one : all_cases()) {
    SegmentReader reader(corpus.documents(), one.options);
    std::vector<std::string> positions;
    std::vector<SegmentBatch> batches;
    SegmentBatch batch;
    for (int step = 0; step < 60; ++step) {
      positions.push_back(reader.position());
      if (!reader.next(batch)) {
        break;
      }
      batches.push_back(batch);
    }
    SegmentReader moved(corpus.documents(),
                        one.options);  // one reader for all: seek must leave no trace
    for (size_t from = positions.size(); from-- > 0;) {
      moved.seek(positions[from]);
      ASSERT_EQ(moved.position(), positions[from]);
      for (size_t step = from; step < std::min(batches.size(), from + 12); ++step) {
        ASSERT_TRUE(moved.next(batch));
        expect_equal(batch, batches[step], one.name + ", from " + std::to_string(from));
      }
    }
    if (!one.options.endless) {
      moved.seek(positions.back());
      EXPECT_FALSE(moved.next(batch));
    }
  }
}

// One finite pass: each (document, position) except the first ones is a label once, and the state
// is reset exactly at the beginning of each document.
TEST(Segments, EveryTokenButTheFirstIsScoredOnce) {
  const Corpus corpus(kLengths, 4);
  for (const Case& one : all_cases()) {
    SegmentOptions options = one.options;
    options.endless = false;
    SegmentReader reader(corpus.documents(), options);
    std::map<std::pair<int64_t, int64_t>, int> scored;
    std::map<int64_t, int> begun;
    int64_t total = 0;
    SegmentBatch batch;
    while (reader.next(batch)) {
      total += batch.scored;
      for (int64_t row = 0; row < batch.rows; ++row) {
        const auto at = static_cast<size_t>(row);
        if (batch.document[at] >= 0 && batch.reset[at] == 1) {
          ++begun[batch.document[at]];
        }
        for (int64_t i = 0; i < batch.length; ++i) {
          if (batch.labels[at * kLength + static_cast<size_t>(i)] >= 0) {
            ++scored[{batch.document[at], batch.offset[at] + i + 1}];
          }
        }
      }
    }
    EXPECT_EQ(reader.epoch(), 0);
    int64_t expected = 0;
    for (size_t doc = 0; doc < corpus.texts().size(); ++doc) {
      const auto document = static_cast<int64_t>(doc);
      const auto length = static_cast<int64_t>(corpus.texts()[doc].size());
      EXPECT_EQ(begun[document], length > 1 ? 1 : 0);
      for (int64_t i = 1; i < length; ++i) {
        EXPECT_EQ((scored[{document, i}]), 1);
        ++expected;
      }
    }
    EXPECT_EQ(total, expected);
    EXPECT_EQ(static_cast<int64_t>(scored.size()), expected);
  }
}

TEST(Segments, EpochsFollowWithoutGapAndDiffer) {
  const Corpus corpus({20, 30, 40, 50, 60}, 5);
  SegmentOptions options;
  options.length = 10;
  SegmentReader reader(corpus.documents(), options);
  SegmentBatch batch;
  std::vector<std::vector<int64_t>> orders(4);
  while (reader.epoch() < 3) {
    ASSERT_TRUE(reader.next(batch));
    if (batch.reset[0] == 1) {
      orders[static_cast<size_t>(reader.epoch())].push_back(batch.document[0]);
    }
  }
  EXPECT_EQ(orders[0].size(), 5U);
  EXPECT_EQ(orders[1].size(), 5U);
  EXPECT_FALSE(orders[0] == orders[1] && orders[1] == orders[2]);
}

TEST(Segments, RefuseForeignPositions) {
  const Corpus corpus(kLengths, 6);
  const Corpus other(kLengths, 7);
  SegmentOptions options;
  options.rows = 2;
  options.length = kLength;
  SegmentReader reader(corpus.documents(), options);
  SegmentBatch batch;
  ASSERT_TRUE(reader.next(batch));
  const std::string position = reader.position();
  const auto refused = [&](SegmentReader& target, const std::string& text) {
    const std::string before = target.position();
    EXPECT_EQ(error_of([&] { target.seek(text); }).code(), ExitCode::bad_input) << text;
    EXPECT_EQ(target.position(), before);
  };
  SegmentReader elsewhere(other.documents(), options);
  refused(elsewhere, position);
  for (int change = 0; change < 5; ++change) {
    SegmentOptions changed = options;
    changed.rows += change == 0 ? 1 : 0;
    changed.length += change == 1 ? 1 : 0;
    changed.seed += change == 2 ? 1 : 0;
    changed.shuffle = change != 3;
    changed.endless = change != 4;
    SegmentReader target(corpus.documents(), changed);
    refused(target, position);
  }
  for (const char* text : {"", "x", "[]", "{}", "null", "{\"format\":1}"}) {
    refused(reader, text);
  }
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json json = nlohmann::json::parse(position);
    json[key] = value;
    return json.dump();
  };
  using Json = nlohmann::json;
  for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(UINT64_MAX), Json()}) {
    refused(reader, with("epoch", value));
    refused(reader, with("taken", value));
    refused(reader, with("row", value));
    refused(reader, with("row", Json::array({Json::array({0, 0}), Json::array({0, value})})));
  }
  refused(reader, with("taken", corpus.documents().count() + 1));
  refused(reader, with("row", Json::array({Json::array({999, 0}), Json::array({0, 0})})));
  refused(reader, with("row", Json::array({Json::array({0, 0, 0}), Json::array({0, 0})})));
  reader.seek(position);
}

TEST(Segments, NothingToPredictIsAnError) {
  const Corpus corpus({1, 1, 0, 1}, 8);
  const Error error = error_of([&] { SegmentReader(corpus.documents(), {}); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
}

TEST(Segments, BatchesBeyondMemoryAreAnError) {
  const Corpus corpus(kLengths, 10);
  SegmentOptions options;
  options.rows = int64_t{1} << 40;
  for (const int64_t length : {int64_t{1} << 20, INT64_MAX / 4}) {  // the second one overflows
    options.length = length;
    const Error error = error_of([&] { SegmentReader(corpus.documents(), options); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_NE(error.message().find("a batch of 1,099,511,627,776 rows"), std::string::npos)
        << error.what();
  }
}

TEST(Segments, CacheCutShortMeanwhileIsAnError) {
  const Corpus corpus(kLengths, 11);
  SegmentReader reader(corpus.documents(), {});
  SegmentBatch batch;
  EXPECT_TRUE(reader.next(batch));
  std::filesystem::resize_file(corpus.documents().path(), 64);
  const Error error = error_of([&] { reader.next(batch); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_NE(error.message().find("was truncated while in use"), std::string::npos) << error.what();
}

TEST(Segments, PositionIsSmall) {
  const Corpus corpus(kLengths, 9);
  SegmentOptions options;
  options.rows = 64;
  SegmentReader reader(corpus.documents(), options);
  EXPECT_LT(reader.position().size(), 2000U);
}

}  // namespace
}  // namespace rondo
