// The corpus of pairs: what is kept, skipped and cut, independent of the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/data/parallel_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::made_up_text;
using testing::small_model;
using testing::spill;
using ParallelCorpusTest = testing::ParallelFixture;

TEST_F(ParallelCorpusTest, KeepsPairsAndCountsTheOthers) {
  put("one\n\n \t\v\f\r\nfour\nfive!\n  six \n1234567\nx\n\xC2\xA0\n",
      "1\n2\n3\n\r\n12345\n6\n7\n123456\n9\n");
  options_.max_tokens = 6;
  const ParallelCorpus corpus = open();
  const ParallelCounts& counts = corpus.counts();
  EXPECT_EQ(counts.lines, 9);
  EXPECT_EQ(counts.empty, 3);
  EXPECT_EQ(counts.long_skipped, 1);
  EXPECT_EQ(counts.long_cut, 0);
  ASSERT_EQ(corpus.count(), 5);
  const std::vector<std::string> sources = {"one", "five!", "  six ", "x", "\xC2\xA0"};
  const std::vector<std::string> targets = {"1", "12345", "6", "123456", "9"};
  const std::vector<int64_t> lines = {1, 5, 6, 8, 9};
  for (int64_t i = 0; i < corpus.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(source_text(corpus, i), sources[at]);
    EXPECT_EQ(text(corpus.target(i), *bytes_), targets[at]);
    EXPECT_EQ(corpus.line(i), lines[at]);
  }
  EXPECT_EQ(corpus.source_tokens(), 3 + 5 + 6 + 1 + 2);
  EXPECT_EQ(corpus.target_tokens(), 1 + 5 + 1 + 6 + 1);
  EXPECT_THROW(corpus.source(5), Error);
  EXPECT_THROW(corpus.target(-1), Error);
  EXPECT_THROW(corpus.line(5), Error);
  EXPECT_THROW(corpus.source(0)[3], Error);
}

TEST_F(ParallelCorpusTest, CutsWhenAsked) {
  put("1234567\nx\n12345678\n123456\n", "a\nABCDEFGH\nABCDEFG\nABCDEF\n");
  options_.max_tokens = 6;
  options_.cut = true;
  const ParallelCorpus corpus = open();
  EXPECT_EQ(corpus.count(), 4);
  EXPECT_EQ(corpus.counts().long_cut, 3);
  EXPECT_EQ(corpus.counts().long_skipped, 0);
  EXPECT_EQ(source_text(corpus, 0), "123456");
  EXPECT_EQ(text(corpus.target(1), *bytes_), "ABCDEF");
  EXPECT_EQ(source_text(corpus, 2) + text(corpus.target(2), *bytes_), "123456ABCDEF");
}

TEST_F(ParallelCorpusTest, LinesBeyondTheLimitAreOverLong) {
  const std::string megabyte(kMaxLineBytes, 'x');
  put("a\n" + megabyte + "y\n" + megabyte + "\nd\n", "1\n2\n3\n" + megabyte + megabyte);
  options_.max_tokens = int64_t{1} << 30;
  ParallelCorpus corpus = open();
  EXPECT_EQ(corpus.count(), 2);
  EXPECT_EQ(corpus.counts().long_skipped, 2);
  EXPECT_EQ(corpus.source(1).size(), static_cast<int64_t>(kMaxLineBytes));
  options_.cut = true;
  corpus = open();
  EXPECT_EQ(corpus.count(), 4);
  EXPECT_EQ(corpus.counts().long_cut, 2);
  EXPECT_EQ(corpus.target(3).size(), static_cast<int64_t>(kMaxLineBytes));
  options_.max_tokens = 10;
  EXPECT_EQ(open().counts().long_cut, 3);
}

using LinePairs = std::vector<std::pair<std::string, std::string>>;

// LinePairs of all kinds, some without text.
LinePairs made_up_lines(uint64_t count) {
  LinePairs lines;
  CounterRandom random(1, "lines");
  for (uint64_t i = 0; i < count; ++i) {
    const auto line = [&](uint64_t seed) {
      std::string text = random.below(10) == 0 ? "" : made_up_text(1, seed);
      text.erase(text.find_last_not_of("\r\n") + 1);
      return random.below(8) == 0 ? text + "\xF0\xFF" : text;
    };
    std::string source = line(2 * i);
    lines.emplace_back(std::move(source), line(2 * i + 1));
  }
  return lines;
}

// The pairs found by a plain loop over the lines.
void expect_pairs(const ParallelCorpus& corpus, const LinePairs& lines, const Tokenizer& from,
                  const Tokenizer& to, const ParallelOptions& options) {
  const auto most = static_cast<size_t>(options.max_tokens);
  int64_t at = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<int32_t> source = from.encode(lines[i].first);
    std::vector<int32_t> target = to.encode(lines[i].second);
    const bool over_long = std::max(source.size(), target.size()) > most;
    if (source.empty() || target.empty() || (over_long && !options.cut)) {
      continue;
    }
    source.resize(std::min(source.size(), most));
    target.resize(std::min(target.size(), most));
    ASSERT_LT(at, corpus.count());
    ASSERT_EQ(corpus.source(at).to_vector(), source);
    ASSERT_EQ(corpus.target(at).to_vector(), target);
    std::vector<int64_t> wide(target.size());
    corpus.target(at).copy_to(wide.data());
    ASSERT_TRUE(std::equal(wide.begin(), wide.end(), target.begin()));
    ASSERT_EQ(corpus.line(at), static_cast<int64_t>(i) + 1);
    ++at;
  }
  EXPECT_EQ(corpus.count(), at);
  EXPECT_EQ(corpus.counts().lines, static_cast<int64_t>(lines.size()));
}

// Every width of tokens on either side, every number of threads, also from a table.
TEST_F(ParallelCorpusTest, EqualsTheNaiveCorpusWhateverTheThreads) {
  const LinePairs lines = made_up_lines(700);
  std::string source;
  std::string target;
  std::string tsv;
  for (const auto& [left, right] : lines) {
    source += left + "\n";
    target += right + "\r\n";
    tsv += left + "\t" + right + "\tmore\n";
  }
  put(source, target);
  spill(folder_.file("text.tsv"), tsv);
  options_.max_tokens = 30;
  const auto model = small_model("bpe");
  const std::vector<std::pair<const Tokenizer*, const Tokenizer*>> tokenizers = {
      {bytes_.get(), model.get()},
      {model.get(), model.get()},
      {&wide_, bytes_.get()},
      {model.get(), &wide_}};
  const ParallelFiles two = options_.files;
  for (const auto& [from, to] : tokenizers) {
    for (options_.cut = false;; options_.cut = true) {
      std::string fingerprint;
      for (const int64_t way : {10, 11, 20, 21, 70, 71}) {  // threads, and whether from a table
        fs::remove_all(options_.cache_folder);
        options_.threads = way / 10;
        options_.files = way % 10 == 1 ? ParallelFiles{folder_.file("text.tsv"), ""} : two;
        const ParallelCorpus corpus = ParallelCorpus::open(options_, *from, *to);
        fingerprint = fingerprint.empty() ? corpus.fingerprint() : fingerprint;
        EXPECT_EQ(corpus.fingerprint(), fingerprint);
        expect_pairs(corpus, lines, *from, *to, options_);
      }
      if (options_.cut) {
        break;
      }
    }
  }
}

TEST_F(ParallelCorpusTest, NothingLeftIsAnError) {
  put("", "");
  Error error = error_of([&] { open(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("no lines"), std::string::npos) << error.what();
  put(" \nlong\n", "x\ny\n");
  options_.max_tokens = 3;
  error = error_of([&] { open(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("no pair left of 2 lines"), std::string::npos) << error.what();
  put("a\nb\n", "1\n");
  EXPECT_EQ(error_of([&] { open(); }).code(), ExitCode::bad_input);
  fs::remove(options_.files.target);
  EXPECT_EQ(error_of([&] { open(); }).code(), ExitCode::io);
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.cache_folder), {}), 0) << "leftovers";
}

// Like a model from another source: it drops characters that it does not know.
class DroppingTokenizer : public testing::WideTokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    return text == "unknown" ? std::vector<int32_t>() : WideTokenizer::encode(text);
  }
};

TEST_F(ParallelCorpusTest, SentencesOfNoTokensAreEmpty) {
  put("a\nunknown\nc\n", "1\n2\nunknown\n");
  const DroppingTokenizer dropping;
  const ParallelCorpus corpus = ParallelCorpus::open(options_, dropping, dropping);
  EXPECT_EQ(corpus.counts().empty, 2);
  ASSERT_EQ(corpus.count(), 1);
  EXPECT_EQ(corpus.line(0), 1);
}

TEST_F(ParallelCorpusTest, ErrorsOfThreadsComeOut) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += i == 321 ? "please refuse me\n" : "fine\n";
  }
  put(text, text);
  for (const int64_t threads : {1, 4}) {
    options_.threads = threads;
    const Error error = error_of([&] { ParallelCorpus::open(options_, *bytes_, wide_); });
    EXPECT_EQ(error.message(), "refused");
  }
}

}  // namespace
}  // namespace rondo
