// Tokenizers trained on first use, of text and of sentence pairs: "bpe:300".
#include <gtest/gtest.h>

#include "rondo/base/error.h"
#include "rondo/config/trained_files.h"
#include "rondo/data/pair_tokenizers.h"
#include "rondo/data/tokenizer.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

TEST(TokenizerRequest, IsAKindAndASize) {
  const auto request = parse_tokenizer_request("unigram:8000");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->type, "unigram");
  EXPECT_EQ(request->vocabulary, 8000);
  for (const char* other : {"bytes", "pieces.model", "/a/bpe:4096/x.model", "", "wordpiece:400"}) {
    EXPECT_FALSE(parse_tokenizer_request(other).has_value()) << other;
  }
  for (const char* wrong : {"bpe:", "bpe:many", "bpe:12", "bpe:1000000", "bpe:4096x", "bpe:-300"}) {
    const Error error = testing::error_of([&] { parse_tokenizer_request(wrong); });
    EXPECT_EQ(error.code(), ExitCode::bad_input) << wrong;
  }
}

TEST(TokenizerRequest, IsLearnedOnceAndKept) {
  const testing::TempDir folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "ring block " + std::to_string(i) + " state level\n";
  testing::spill(folder.file("text"), text);
  EXPECT_EQ(tokenizer_file("bytes", {folder.file("text")}, folder.file("cache")), "bytes");
  const std::string file = tokenizer_file("bpe:300", {folder.file("text")}, folder.file("cache"));
  const std::string learned = testing::slurp(file);
  EXPECT_LE(make_tokenizer(file)->vocabulary(), 300);
  testing::spill(file, "kept as it is");
  EXPECT_EQ(tokenizer_file("bpe:300", {folder.file("text")}, folder.file("cache")), file);
  EXPECT_EQ(testing::slurp(file), "kept as it is");
  // Different text, different tokenizer; the same text elsewhere, the same bytes.
  testing::spill(folder.file("text"), text + "more\n");
  EXPECT_NE(tokenizer_file("bpe:300", {folder.file("text")}, folder.file("cache")), file);
  testing::spill(folder.file("copy"), text);
  const std::string again = tokenizer_file("bpe:300", {folder.file("copy")}, folder.file("cache"));
  EXPECT_EQ(testing::slurp(again), learned);
}

// Pairs whose last quarter, held out for validation, has other words.
struct PairFiles {
  explicit PairFiles(const std::string& held_out) {
    for (int i = 0; i < 300; ++i) {
      source += "der Ring " + std::to_string(i) + " dreht sich\n";
      target += "the ring " + std::to_string(i) + " turns\r\n";
    }
    all_source = source;
    all_target = target;
    for (int i = 0; i < 100; ++i) {
      all_source += held_out + " gesehen\n";
      all_target += held_out + " seen" + (i < 99 ? "\n" : "");
    }
  }
  std::string source, target;          // the first 300
  std::string all_source, all_target;  // 400
};

// The tokenizer of data.train = `spec`, as trained.
std::string trained_on(const testing::TempDir& folder, const std::string& spec) {
  PairConfig data;
  data.train = folder.file(spec);
  data.source = "de";
  data.target = "en";
  data.tokenizer = "bpe:300";
  train_pair_tokenizers(data, folder.file("cache"));
  EXPECT_TRUE(is_tokenizer_file(data.tokenizer)) << data.tokenizer;
  return testing::slurp(data.tokenizer);
}

TEST(TokenizerRequest, PairsHeldOutAreNotTrainedOn) {
  const testing::TempDir folder;
  const PairFiles pairs("never before");
  testing::spill(folder.file("first.de"), pairs.source);
  testing::spill(folder.file("first.en"), pairs.target);
  testing::spill(folder.file("all.de.gz"), testing::gzip(pairs.all_source));
  testing::spill(folder.file("all.en"), pairs.all_target);
  const std::string first = trained_on(folder, "first");
  EXPECT_EQ(trained_on(folder, "all#:-25%"), first);
  EXPECT_EQ(trained_on(folder, "all#:300"), first);
  EXPECT_NE(trained_on(folder, "all"), first);
  EXPECT_NE(trained_on(folder, "all#100:"), first);
  // A part in the middle.
  const PairFiles other("something else");
  testing::spill(folder.file("around.de"), "nie\n" + other.all_source);
  testing::spill(folder.file("around.en"), "never\n" + other.all_target);
  EXPECT_EQ(trained_on(folder, "around#1:301"), first);
}

TEST(TokenizerRequest, SidesAndTablesOfPairsArePartsToo) {
  const testing::TempDir folder;
  const PairFiles pairs("never before");
  testing::spill(folder.file("all.de"), pairs.all_source);
  testing::spill(folder.file("all.en"), pairs.all_target);
  testing::spill(folder.file("text"), pairs.target);
  PairConfig data;
  data.train = folder.file("all#:-25%");
  data.source = "de";
  data.target = "en";
  data.source_tokenizer = "bytes";
  data.target_tokenizer = "bpe:300";
  train_pair_tokenizers(data, folder.file("cache"));
  EXPECT_EQ(data.source_tokenizer, "bytes");
  const std::string of_text =
      tokenizer_file("bpe:300", {folder.file("text")}, folder.file("cache"));
  EXPECT_EQ(testing::slurp(data.target_tokenizer), testing::slurp(of_text));

  std::string table;
  for (int i = 0; i < 300; ++i) table += "der Ring " + std::to_string(i) + "\tthe ring\n";
  testing::spill(folder.file("first.tsv"), table);
  testing::spill(folder.file("all.tsv"), table + "nie gesehen\tnever seen\n");
  EXPECT_EQ(trained_on(folder, "all.tsv#:-1"), trained_on(folder, "first.tsv"));
  EXPECT_NE(trained_on(folder, "all.tsv"), trained_on(folder, "first.tsv"));
}

}  // namespace
}  // namespace rondo
