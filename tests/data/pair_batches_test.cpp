// PairBatches against a naive batcher and a naive filling of rows; every pair once per epoch within
// the budget; exact continuation from every position.
#include "rondo/data/pair_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "rondo/base/log.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::random_bytes;
using testing::spill;
using testing::TempDir;

using PairLengths = std::pair<int64_t, int64_t>;  // source, target

// Pairs of the given lengths, of random letters.
class PairCorpus {
 public:
  PairCorpus(const std::vector<PairLengths>& lengths, uint64_t seed)
      : corpus_(build(lengths, seed)) {}
  const ParallelCorpus& corpus() const { return corpus_; }
  const std::string& source(int64_t i) const { return sources_[static_cast<size_t>(i)]; }
  const std::string& target(int64_t i) const { return targets_[static_cast<size_t>(i)]; }
  int64_t difference(int64_t i) const {
    return static_cast<int64_t>(source(i).size()) - static_cast<int64_t>(target(i).size());
  }

 private:
  ParallelCorpus build(const std::vector<PairLengths>& lengths, uint64_t seed) {
    init_log(-2);
    std::string text;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto letters = [&](int64_t count, uint64_t side) {
        return random_bytes(static_cast<size_t>(count), (seed * 100000 + i) * 2 + side,
                            "abcdefghij");
      };
      sources_.push_back(letters(lengths[i].first, 0));
      targets_.push_back(letters(lengths[i].second, 1));
      text += sources_.back() + "\t" + targets_.back() + "\n";
    }
    ParallelOptions options;
    options.files.source = folder_.file("pairs.tsv");
    options.cache_folder = folder_.file("cache");
    options.threads = 1;
    spill(options.files.source, text);
    const auto bytes = make_tokenizer("bytes");
    ParallelCorpus corpus = ParallelCorpus::open(options, *bytes, *bytes);
    init_log(0);
    return corpus;
  }

  TempDir folder_;
  std::vector<std::string> sources_;
  std::vector<std::string> targets_;
  ParallelCorpus corpus_;
};

// Of similar length on both sides, as translations are.
std::vector<PairLengths> random_lengths(size_t count, uint64_t seed, uint64_t longest) {
  CounterRandom random(seed, "lengths");
  const auto most = static_cast<int64_t>(longest);
  std::vector<PairLengths> lengths;
  for (size_t i = 0; i < count; ++i) {
    const auto source = static_cast<int64_t>(1 + random.below(longest));
    const auto change = static_cast<int64_t>(random.below(longest / 3 + 1));
    lengths.emplace_back(source, std::clamp<int64_t>(source + change - most / 6, 1, most));
  }
  return lengths;
}

PairBatchOptions with_special_tokens(int64_t tokens) {
  PairBatchOptions options;
  options.tokens = tokens;
  const SpecialTokens special_tokens = make_tokenizer("bytes")->special_tokens();
  options.use_special_tokens(special_tokens, special_tokens);
  return options;
}

int64_t longer_side(const PairCorpus& pairs, int64_t i, const PairBatchOptions& options) {
  const size_t source = pairs.source(i).size() + (options.source_end >= 0 ? 1 : 0);
  const size_t target = pairs.target(i).size() + (options.target_begin >= 0 ? 1 : 0);
  return static_cast<int64_t>(std::max(source, target));
}

// A second implementation of the rules for batches: sorted by the longer side, then alternately up
// and down by the difference; cut greedily.
std::vector<std::vector<int64_t>> naive_batches(const PairCorpus& pairs,
                                                const PairBatchOptions& options) {
  std::map<int64_t, std::vector<int64_t>> by_length;
  for (int64_t i = 0; i < pairs.corpus().count(); ++i) {
    by_length[longer_side(pairs, i, options)].push_back(i);
  }
  std::vector<std::vector<int64_t>> batches(1);
  bool up = true;
  for (auto& [length, members] : by_length) {
    std::stable_sort(members.begin(), members.end(), [&](int64_t a, int64_t b) {
      return up ? pairs.difference(a) < pairs.difference(b)
                : pairs.difference(a) > pairs.difference(b);
    });
    up = !up;
    for (const int64_t member : members) {
      const auto rows = static_cast<int64_t>(batches.back().size()) + 1;
      const bool fits =
          rows * length <= options.tokens && (options.max_rows == 0 || rows <= options.max_rows);
      if (!batches.back().empty() && !fits) {
        batches.emplace_back();
      }
      batches.back().push_back(member);
    }
  }
  return batches;
}

// Fills one batch cell by cell from the texts.
PairBatch naive_batch(const PairCorpus& pairs, const std::vector<int64_t>& members,
                      const PairBatchOptions& options) {
  std::vector<std::vector<int64_t>> sources, targets, labels;
  PairBatch batch;
  for (const int64_t member : members) {
    const auto bytes = [](const std::string& text) {
      return std::vector<int64_t>(text.begin(), text.end());
    };
    sources.push_back(bytes(pairs.source(member)));
    if (options.source_end >= 0) {
      sources.back().push_back(options.source_end);
    }
    std::vector<int64_t> all = bytes(pairs.target(member));
    if (options.target_begin >= 0) {
      all.insert(all.begin(), options.target_begin);
    }
    targets.push_back(all);
    all.erase(all.begin());
    all.push_back(options.target_end);  // -1 if there is none
    labels.push_back(all);
    batch.source_tokens += static_cast<int64_t>(sources.back().size());
    batch.target_tokens +=
        static_cast<int64_t>(all.size()) - std::count(all.begin(), all.end(), -1);
  }
  batch.rows = static_cast<int64_t>(members.size());
  batch.pair = members;
  const auto pad = [](const std::vector<std::vector<int64_t>>& rows, int64_t padding,
                      std::vector<int64_t>& out) {
    size_t length = 0;
    for (const auto& row : rows) {
      length = std::max(length, row.size());
    }
    for (std::vector<int64_t> row : rows) {
      row.resize(length, padding);
      out.insert(out.end(), row.begin(), row.end());
    }
    return static_cast<int64_t>(length);
  };
  batch.source_length = pad(sources, options.source_padding, batch.source);
  batch.target_length = pad(targets, options.target_padding, batch.target);
  pad(labels, -1, batch.labels);
  return batch;
}

void expect_equal(const PairBatch& a, const PairBatch& b, const std::string& what) {
  const auto cells = [](const PairBatch& c) {
    return std::tie(c.pair, c.source, c.target, c.labels);
  };
  const auto numbers = [](const PairBatch& c) {
    return std::tie(c.rows, c.source_length, c.target_length, c.source_tokens, c.target_tokens);
  };
  ASSERT_EQ(numbers(a), numbers(b)) << what;
  ASSERT_EQ(cells(a), cells(b)) << what;
}

std::vector<PairBatch> epoch_of(PairBatches& batches) {
  std::vector<PairBatch> epoch(static_cast<size_t>(batches.batches_per_epoch()));
  for (PairBatch& batch : epoch) {
    EXPECT_TRUE(batches.next(batch));
  }
  return epoch;
}

TEST(PairBatches, WithoutShufflingEqualTheNaiveBatcher) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const PairCorpus pairs(random_lengths(1 + 37 * seed, seed, 5 + seed * 4), seed);
    for (int variant = 0; variant < 16; ++variant) {
      PairBatchOptions options = with_special_tokens(seed % 3 == 0 ? 20 : 150);
      options.shuffle = false;
      options.endless = false;
      options.max_rows = variant % 2 == 0 ? 0 : 5;
      options.source_end = (variant & 2) != 0 ? -1 : options.source_end;
      options.target_begin = (variant & 4) != 0 ? -1 : options.target_begin;
      options.target_end = (variant & 8) != 0 ? -1 : options.target_end;
      options.target_padding = 999;
      PairBatches batches(pairs.corpus(), options);
      const auto expected = naive_batches(pairs, options);
      ASSERT_EQ(batches.batches_per_epoch(), static_cast<int64_t>(expected.size()));
      PairBatch batch;
      for (const std::vector<int64_t>& members : expected) {
        ASSERT_TRUE(batches.next(batch));
        expect_equal(batch, naive_batch(pairs, members, options), std::to_string(variant));
      }
      batch.rows = -7;
      ASSERT_FALSE(batches.next(batch));
      ASSERT_EQ(batch.rows, -7);
      ASSERT_EQ(batches.epoch(), 0);
    }
  }
}

// Any lengths, any budget, two epochs: every pair once in each, correctly filled, within the
// budget, and batches cut where the naive batcher cuts them.
TEST(PairBatches, ShuffledEveryPairOnceWithinTheBudget) {
  CounterRandom random(1, "budgets");
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const size_t count = 1 + random.below(400);
    const PairCorpus pairs(random_lengths(count, seed, 1 + random.below(60)), seed);
    PairBatchOptions options = with_special_tokens(static_cast<int64_t>(1 + random.below(400)));
    options.max_rows = static_cast<int64_t>(random.below(3) == 0 ? 1 + random.below(9) : 0);
    options.seed = seed;
    std::multiset<std::pair<size_t, int64_t>> expected;  // rows and longest of each batch
    for (const auto& members : naive_batches(pairs, options)) {
      expected.emplace(members.size(), longer_side(pairs, members.back(), options));
    }
    PairBatches batches(pairs.corpus(), options);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<int> seen(count);
      std::multiset<std::pair<size_t, int64_t>> got;
      for (const PairBatch& batch : epoch_of(batches)) {
        ASSERT_EQ(batches.epoch(), epoch);
        expect_equal(batch, naive_batch(pairs, batch.pair, options), std::to_string(seed));
        const int64_t longest = std::max(batch.source_length, batch.target_length);
        ASSERT_TRUE(batch.rows == 1 || batch.rows * longest <= options.tokens);
        ASSERT_TRUE(options.max_rows == 0 || batch.rows <= options.max_rows);
        got.emplace(static_cast<size_t>(batch.rows), longest);
        for (const int64_t pair : batch.pair) {
          ++seen[static_cast<size_t>(pair)];
        }
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int64_t>(count));
      ASSERT_EQ(got, expected);
    }
  }
}

TEST(PairBatches, ContinueExactlyFromEveryPosition) {
  const PairCorpus pairs(random_lengths(150, 3, 30), 3);
  for (const bool shuffle : {true, false}) {
    for (const bool endless : {true, false}) {
      PairBatchOptions options = with_special_tokens(100);
      options.shuffle = shuffle;
      options.endless = endless;
      PairBatches batches(pairs.corpus(), options);
      std::vector<std::string> positions;
      std::vector<PairBatch> all;
      PairBatch batch;
      while (batches.epoch() < 2) {
        positions.push_back(batches.position());
        if (!batches.next(batch)) {
          break;
        }
        all.push_back(batch);
      }
      ASSERT_GT(all.size(), 20U);
      PairBatches moved(pairs.corpus(), options);  // one reader for all: seek must leave no trace
      for (size_t from = positions.size(); from-- > 0;) {
        if (from % 7 == 0) {  // as after a crash
          PairBatches fresh(pairs.corpus(), options);
          fresh.seek(positions[from]);
          EXPECT_EQ(fresh.next(batch), from < all.size());
        }
        moved.seek(positions[from]);
        ASSERT_EQ(moved.position(), positions[from]);
        for (size_t step = from; step < std::min(all.size(), from + 9); ++step) {
          ASSERT_TRUE(moved.next(batch));
          expect_equal(batch, all[step], std::to_string(from));
        }
      }
    }
  }
}

// How often two pairs of a batch were together in an earlier batch.
double meeting_again(const std::vector<PairBatch>& before, const std::vector<PairBatch>& now) {
  std::map<int64_t, size_t> where;
  for (size_t i = 0; i < before.size(); ++i) {
    for (const int64_t pair : before[i].pair) {
      where[pair] = i;
    }
  }
  double again = 0;
  double all = 0;
  for (const PairBatch& batch : now) {
    for (const int64_t a : batch.pair) {
      for (const int64_t b : batch.pair) {
        again += a != b && where[a] == where[b] ? 1 : 0;
        all += a != b ? 1 : 0;
      }
    }
  }
  return again / all;
}

TEST(PairBatches, EpochsAndSeedsDiffer) {
  const PairCorpus pairs(random_lengths(4000, 5, 30), 5);
  PairBatchOptions options = with_special_tokens(300);
  PairBatches batches(pairs.corpus(), options);
  PairBatches same(pairs.corpus(), options);
  options.seed = 2;
  PairBatches other(pairs.corpus(), options);
  const std::vector<PairBatch> first = epoch_of(batches);
  const std::vector<PairBatch> second = epoch_of(batches);
  EXPECT_EQ(batches.epoch(), 1);
  EXPECT_LT(meeting_again(first, second), 0.5);
  EXPECT_LT(meeting_again(first, epoch_of(other)), 0.5);
  EXPECT_EQ(meeting_again(first, epoch_of(same)), 1.0);
  // Short and long batches are mixed.
  int64_t rises = 0, real = 0, padded = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    rises += i > 0 && first[i].source_length > first[i - 1].source_length ? 1 : 0;
    real += first[i].source_tokens + first[i].target_tokens;
    padded += first[i].rows * (first[i].source_length + first[i].target_length);
  }
  EXPECT_NEAR(static_cast<double>(rises) / static_cast<double>(first.size()), 0.48, 0.08);
  EXPECT_GT(static_cast<double>(real) / static_cast<double>(padded), 0.93);
}

TEST(PairBatches, BuffersAreUsedAgain) {
  const PairCorpus pairs(random_lengths(300, 6, 50), 6);
  PairBatches batches(pairs.corpus(), with_special_tokens(200));
  PairBatch batch;
  ASSERT_TRUE(batches.next(batch));
  const auto places = [&] {
    return std::vector{batch.source.data(), batch.target.data(), batch.labels.data(),
                       batch.pair.data()};
  };
  const auto before = places();
  while (batches.epoch() < 3) {
    ASSERT_TRUE(batches.next(batch));
    ASSERT_EQ(places(), before);
  }
}

TEST(PairBatches, RefuseForeignPositions) {
  const PairCorpus pairs(random_lengths(50, 7, 20), 7);
  const PairCorpus others(random_lengths(50, 7, 20), 8);
  const PairBatchOptions options = with_special_tokens(60);
  PairBatches batches(pairs.corpus(), options);
  epoch_of(batches);
  const std::string position = batches.position();
  EXPECT_LT(position.size(), 300U);
  const auto refused = [&](PairBatches& target, const std::string& text) {
    const std::string before = target.position();
    EXPECT_EQ(error_of([&] { target.seek(text); }).code(), ExitCode::bad_input) << text;
    EXPECT_EQ(target.position(), before);
  };
  PairBatches elsewhere(others.corpus(), options);
  refused(elsewhere, position);
  for (int change = 0; change < 8; ++change) {
    PairBatchOptions changed = options;
    changed.tokens += change == 0 ? 1 : 0;
    changed.max_rows += change == 1 ? 1 : 0;
    changed.seed += change == 2 ? 1 : 0;
    changed.shuffle = change != 3;
    changed.endless = change != 4;
    changed.source_end = change == 5 ? -1 : changed.source_end;
    changed.target_begin = change == 6 ? -1 : changed.target_begin;
    changed.target_end = change == 7 ? -1 : changed.target_end;
    PairBatches target(pairs.corpus(), changed);
    refused(target, position);
  }
  for (const char* text : {"", "x", "[]", "{}", "null", "{\"format\":1}", "{\"epoch\":0}"}) {
    refused(batches, text);
  }
  using Json = nlohmann::json;
  const Json beyond = batches.batches_per_epoch() + 1;
  for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(UINT64_MAX), Json(), beyond}) {
    for (const char* key : {"epoch", "batch"}) {
      Json json = Json::parse(position);
      json[key] = value;
      if (value != beyond || key == std::string("batch")) {
        refused(batches, json.dump());
      }
      json.erase(key);
      refused(batches, json.dump());
    }
  }
  PairBatchOptions padded = options;
  padded.source_padding = 0;
  PairBatches(pairs.corpus(), padded).seek(position);  // padding may differ
}

}  // namespace
}  // namespace rondo
