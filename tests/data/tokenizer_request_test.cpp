// Tokenizers that are learned when first asked for: "bpe:300".
#include <gtest/gtest.h>

#include "rondo/base/error.h"
#include "rondo/data/tokenizer.h"
#include "tests/base/base_test_util.h"

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
  // Other text, another tokenizer; the same text elsewhere, the same bytes.
  testing::spill(folder.file("text"), text + "more\n");
  EXPECT_NE(tokenizer_file("bpe:300", {folder.file("text")}, folder.file("cache")), file);
  testing::spill(folder.file("copy"), text);
  const std::string again = tokenizer_file("bpe:300", {folder.file("copy")}, folder.file("cache"));
  EXPECT_EQ(testing::slurp(again), learned);
}

}  // namespace
}  // namespace rondo
