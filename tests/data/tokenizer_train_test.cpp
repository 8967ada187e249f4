// Training tokenizers: works for any text, is reproducible, and makes foreign models lossless.
#include <gtest/gtest.h>

#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/piece_library.h"
#include "rondo/data/tokenizer.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::made_up_text;
using testing::nasty_texts;
using testing::random_bytes;
using testing::slurp;
using testing::spill;
using testing::TempDir;

class TokenizerTrain : public ::testing::Test {
 protected:
  void SetUp() override { init_log(-2); }  // hundreds of models are trained here
  void TearDown() override { init_log(0); }

  TokenizerTraining training(const std::string& text, const std::string& type = "bpe",
                             int64_t vocabulary = 300) {
    const std::string name = "source" + std::to_string(++sources_);
    spill(folder_.file(name), text);
    TokenizerTraining options;
    options.sources = {folder_.file(name)};
    options.output = folder_.file(name + ".model");
    options.vocabulary = vocabulary;
    options.type = type;
    return options;
  }

  std::shared_ptr<const Tokenizer> train(const TokenizerTraining& options) {
    train_tokenizer(options);
    return make_tokenizer(options.output);
  }

  TempDir folder_;
  int sources_ = 0;
};

// The lines of a text, passed to SentencePiece's own trainer.
class LineStream : public SentenceStream {
 public:
  explicit LineStream(const std::string& text) : lines_(split(text, '\n')) {}
  bool done() const override { return at_ == lines_.size(); }
  void next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }

 private:
  std::vector<std::string> lines_;
  size_t at_ = 0;
};

TEST_F(TokenizerTrain, IsDeterministic) {
  for (const char* type : {"bpe", "unigram"}) {
    TokenizerTraining options = training(made_up_text(300, 2), type);
    train_tokenizer(options);
    const std::string first = slurp(options.output);
    options.output = folder_.file("again.model");
    train_tokenizer(options);
    EXPECT_TRUE(slurp(options.output) == first) << type;
  }
}

TEST_F(TokenizerTrain, AByteOrderMarkIsNoText) {
  const std::string text = made_up_text(300, 2);
  const TokenizerTraining plain = training(text);
  const TokenizerTraining marked = training("\xEF\xBB\xBF" + text);
  train_tokenizer(plain);
  train_tokenizer(marked);
  EXPECT_TRUE(slurp(marked.output) == slurp(plain.output));
}

TEST_F(TokenizerTrain, SampleDependsOnTheTextAlone) {
  TokenizerTraining options = training(made_up_text(2000, 2));
  options.max_sentences = 50;
  train_tokenizer(options);
  const std::string first = slurp(options.output);
  train_tokenizer(options);
  EXPECT_TRUE(slurp(options.output) == first);
  options.max_sentences = 1'000'000;
  options.max_bytes = 4096;
  const auto tokenizer = train(options);
  EXPECT_FALSE(slurp(options.output) == first);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the river")), "the river");
}

// Texts on which SentencePiece's trainer alone drops lines, fails or aborts.
TEST_F(TokenizerTrain, TakesAnyText) {
  using namespace std::string_literals;
  std::string all_planes;
  for (uint32_t code = 0x20; code < 0x3000; code += 5) {
    all_planes += code < 0x80    ? std::string(1, static_cast<char>(code))
                  : code < 0x800 ? std::string{static_cast<char>(0xC0 | code >> 6),
                                               static_cast<char>(0x80 | (code & 0x3F))}
                                 : std::string{static_cast<char>(0xE0 | code >> 12),
                                               static_cast<char>(0x80 | (code >> 6 & 0x3F)),
                                               static_cast<char>(0x80 | (code & 0x3F))};
  }
  const std::vector<std::string> texts = {
      "a",
      "ab",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "the same line\nthe same line\n",
      "tab\tseparated\tvalues\n",
      "\0nul\0 everywhere\0"s,
      "\xE2\x96\x81 \xE2\x96\x85 reserved \xE2\x96\x85\n",
      "<s> </s> <unk> <0x41> <pad>\n",
      std::string(9000, 'x'),
      random_bytes(20'000, 1),
      all_planes,
      made_up_text(20, 1) + random_bytes(500, 2) + std::string(5000, ' ') + "end",
  };
  for (const std::string type : {"bpe", "unigram"}) {
    for (const int64_t vocabulary : {256, 1000}) {
      for (const std::string& text : texts) {
        const auto tokenizer = train(training(text, type, vocabulary));
        EXPECT_LE(tokenizer->vocabulary(), std::max<int64_t>(vocabulary, 262));
        EXPECT_TRUE(tokenizer->decode(tokenizer->encode(text)) == text)
            << type << " " << vocabulary << " " << printable(text, 40);
      }
    }
  }
}

TEST_F(TokenizerTrain, CoverageLeavesRareCharactersToBytes) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "common words here\n";
  }
  text += "日";
  TokenizerTraining options = training(text);
  options.coverage = 0.999;
  EXPECT_EQ(train(options)->encode("日").size(), 3U);
  options.coverage = 1.0;
  EXPECT_EQ(train(options)->encode("日").size(), 1U);
}

TEST_F(TokenizerTrain, RefusesBadOptionsAndNoText) {
  const auto code_of = [&](const TokenizerTraining& options) {
    return error_of([&] { train_tokenizer(options); }).code();
  };
  TokenizerTraining options = training("some text");
  options.vocabulary = 255;
  EXPECT_EQ(code_of(options), ExitCode::bad_input);
  options.vocabulary = 65537;
  EXPECT_EQ(code_of(options), ExitCode::bad_input);
  options = training("some text");
  options.type = "word";
  EXPECT_EQ(code_of(options), ExitCode::bad_input);
  options = training("some text");
  options.coverage = 0;
  EXPECT_EQ(code_of(options), ExitCode::bad_input);
  EXPECT_EQ(code_of(training("")), ExitCode::bad_input);
  EXPECT_EQ(code_of(training("\n\n\t\n\xFF")), ExitCode::bad_input);
  options = training("some text");
  options.output = folder_.file("no/such/folder.model");
  EXPECT_EQ(code_of(options), ExitCode::io);
  options = training("some text");
  options.sources = {folder_.file("missing")};
  EXPECT_EQ(code_of(options), ExitCode::io);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

// With the settings of other projects: normalization, dummy prefix and whitespace folding on.
TEST_F(TokenizerTrain, ForeignModelsAreMadeLossless) {
  const std::string path = folder_.file("foreign.model");
  const auto foreign = [&](const std::unordered_map<std::string, std::string>& extra) {
    std::unordered_map<std::string, std::string> flags = {{"minloglevel", "3"},
                                                          {"hard_vocab_limit", "false"},
                                                          {"vocab_size", "400"},
                                                          {"model_type", "bpe"}};
    flags.insert(extra.begin(), extra.end());
    LineStream lines(made_up_text(300, 6));
    std::string model;
    std::string error;
    EXPECT_TRUE(piece_library().train(flags, lines, model, error)) << error;
    spill(path, model);
    return make_tokenizer(path);
  };
  const auto usual = foreign({{"byte_fallback", "true"}, {"user_defined_symbols", "<mask>"}});
  EXPECT_EQ(usual->decode(usual->encode("a <mask> b")), "a <mask> b");
  EXPECT_EQ(usual->special_tokens().padding, usual->special_tokens().unknown);  // it has no padding
  // Pieces that extend over spaces, so that words depend on each other.
  const auto reaching = foreign({{"byte_fallback", "true"}, {"split_by_whitespace", "false"}});
  const std::string sample = made_up_text(50, 6);
  EXPECT_LT(reaching->encode(sample).size(), usual->encode(sample).size());
  for (const auto& tokenizer : {usual, reaching}) {
    for (const std::string& text : nasty_texts()) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << printable(text);
    }
  }
  const Error error = error_of([&] { foreign({}); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(error.message().find("no byte pieces"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace rondo
