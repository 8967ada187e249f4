// Tokenizers: lossless; special tokens decode to nothing; pieces of text add up; streams yield
// whole characters; broken models are rejected.
#include "rondo/data/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "rondo/base/text.h"
#include "rondo/data/piece_library.h"
#include "tests/data/data_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::made_up_text;
using testing::nasty_texts;
using testing::random_bytes;
using testing::slurp;
using testing::small_model;
using testing::spill;
using testing::TempDir;

std::vector<std::shared_ptr<const Tokenizer>> all_kinds() {
  return {make_tokenizer("bytes"), small_model("bpe"), small_model("unigram"),
          small_model("bpe", 262)};
}

TEST(Tokenizer, BytesAreIds) {
  const auto bytes = make_tokenizer("bytes");
  EXPECT_EQ(bytes->vocabulary(), 260);
  EXPECT_EQ(bytes->largest_token(), 255);
  EXPECT_EQ(bytes->name(), "bytes");
  EXPECT_EQ(bytes->encode("a\xFF"), (std::vector<int32_t>{97, 255}));
  EXPECT_EQ(bytes->decode({104, kBytePadding, kByteBegin, 105, kByteEnd, kByteUnknown}), "hi");
  EXPECT_EQ(bytes->special_tokens().padding, 256);
  EXPECT_EQ(bytes->special_tokens().begin, 257);
  EXPECT_EQ(bytes->special_tokens().end, 258);
  EXPECT_EQ(bytes->special_tokens().unknown, 259);
}

TEST(Tokenizer, NothingIsLost) {
  for (const auto& tokenizer : all_kinds()) {
    for (const std::string& text : nasty_texts()) {
      const std::vector<int32_t> tokens = tokenizer->encode(text);
      EXPECT_EQ(tokenizer->decode(tokens), text) << tokenizer->name() << ": " << printable(text);
      for (const int32_t token : tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LE(token, tokenizer->largest_token());
        ASSERT_FALSE(tokenizer->decode({token}).empty()) << "a mark was made from text";
      }
    }
  }
}

TEST(Tokenizer, MarksAndForeignIdsDecodeToNothing) {
  for (const auto& tokenizer : all_kinds()) {
    const SpecialTokens special_tokens = tokenizer->special_tokens();
    const auto beyond = static_cast<int32_t>(tokenizer->vocabulary());
    EXPECT_EQ(tokenizer->decode({special_tokens.padding, special_tokens.begin, special_tokens.end,
                                 special_tokens.unknown}),
              "");
    EXPECT_EQ(tokenizer->decode({-1, INT32_MIN, beyond, INT32_MAX}), "");
  }
}

TEST(Tokenizer, SentencePieceMakesFewerTokens) {
  const std::string text = made_up_text(100, 9);
  for (const char* type : {"bpe", "unigram"}) {
    const auto model = small_model(type);
    EXPECT_GT(model->vocabulary(), 300) << type;
    EXPECT_LE(model->vocabulary(), 400) << type;
    EXPECT_LT(model->encode(text).size(), text.size() / 2) << type;
  }
}

// Passing the text in our way gives the tokens that SentencePiece gives for a line.
TEST(Tokenizer, EqualsSentencePieceItself) {
  for (const char* type : {"bpe", "unigram"}) {
    const auto tokenizer = small_model(type);
    std::string error;
    const auto model = piece_library().load(slurp(tokenizer->name()), error);
    ASSERT_NE(model, nullptr) << error;
    for (const std::string& line : split(made_up_text(300, 11), '\n')) {
      std::vector<int> ids;
      ASSERT_TRUE(model->encode(line, ids));
      EXPECT_EQ(tokenizer->encode(line), (std::vector<int32_t>{ids.begin(), ids.end()})) << line;
    }
  }
}

TEST(Tokenizer, ServesManyThreads) {
  const auto tokenizer = make_tokenizer(small_model("bpe")->name());  // a stateless one
  const std::string text = made_up_text(200, 12) + random_bytes(2000, 1);
  const std::vector<int32_t> expected = small_model("bpe")->encode(text);
  std::vector<std::thread> threads;
  std::array<bool, 4> equal{};
  for (bool& result : equal) {
    threads.emplace_back([&] {
      result = true;
      for (int i = 0; i < 5; ++i) {
        result = result && tokenizer->encode(text) == expected;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(equal, (std::array<bool, 4>{true, true, true, true}));
}

TEST(Tokenizer, CutsFallOnLinesAndCharacters) {
  EXPECT_EQ(encode_cut("ab\ncd\n", false), 3U);
  EXPECT_EQ(encode_cut("ab", false), 0U);
  EXPECT_EQ(encode_cut("ab", true), 2U);
  EXPECT_EQ(encode_cut("", true), 0U);
  std::string line(kMaxEncodeStretch - 1, 'x');
  EXPECT_EQ(encode_cut(line + "\n", false), kMaxEncodeStretch);
  EXPECT_EQ(encode_cut(line + "\xF0\x9F\x98\x80\n", false), kMaxEncodeStretch - 1);
  EXPECT_EQ(encode_cut(line + "xy", true), kMaxEncodeStretch);
  EXPECT_EQ(encode_cut(line + "x", false), 0U);
  EXPECT_EQ(encode_cut(std::string(kMaxEncodeStretch + 9, '\x80'), true), kMaxEncodeStretch);
}

TEST(Tokenizer, StretchesAddUpToTheWhole) {
  std::string text = made_up_text(50, 3) + random_bytes(3000, 4);
  std::string long_line;
  while (long_line.size() < kMaxEncodeStretch + 1000) {
    long_line += "日本語 über ";
  }
  text += long_line + "\nend";
  for (const auto& tokenizer : {small_model("bpe"), make_tokenizer("bytes")}) {
    std::vector<int32_t> tokens;
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t length = encode_cut(rest, true);
      const std::vector<int32_t> part = tokenizer->encode(rest.substr(0, length));
      tokens.insert(tokens.end(), part.begin(), part.end());
      rest.remove_prefix(length);
    }
    EXPECT_TRUE(tokens == tokenizer->encode(text));
    EXPECT_TRUE(tokenizer->decode(tokens) == text);
  }
}

TEST(Tokenizer, FingerprintTellsModelsApart) {
  const auto bpe = small_model("bpe");
  EXPECT_EQ(bpe->fingerprint().size(), 16U);
  EXPECT_EQ(bpe->fingerprint(), make_tokenizer(bpe->name())->fingerprint());
  EXPECT_NE(bpe->fingerprint(), small_model("unigram")->fingerprint());
  EXPECT_NE(bpe->fingerprint(), make_tokenizer("bytes")->fingerprint());
}

TEST(Tokenizer, RefusesWhatIsNoModel) {
  const TempDir folder;
  EXPECT_EQ(error_of([&] { make_tokenizer(folder.file("none.model")); }).code(), ExitCode::io);
  EXPECT_EQ(error_of([&] { make_tokenizer("byte"); }).code(), ExitCode::io);
  spill(folder.file("text.model"), "this is not a model");
  EXPECT_EQ(error_of([&] { make_tokenizer(folder.file("text.model")); }).code(),
            ExitCode::bad_input);
  spill(folder.file("empty.model"), "");
  EXPECT_EQ(error_of([&] { make_tokenizer(folder.file("empty.model")); }).code(),
            ExitCode::bad_input);
}

// Every truncated model, and many with flipped bits, either loads (and is lossless) or is rejected.
TEST(Tokenizer, DamagedModelsAreRefusedOrHarmless) {
  const TempDir folder;
  const std::string whole = slurp(small_model("bpe", 262)->name());
  const std::string path = folder.file("damaged.model");
  const auto attempt = [&](const std::string& model) {
    spill(path, model);
    try {
      const auto tokenizer = make_tokenizer(path);
      const std::string text = "the river\n\xFF";
      (void)tokenizer->decode(tokenizer->encode(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
    }
  };
  for (size_t size = 0; size < whole.size(); size += 97) {
    attempt(whole.substr(0, size));
  }
  CounterRandom random(1, "flips");
  for (int i = 0; i < 60; ++i) {
    std::string flipped = whole;
    flipped[random.below(flipped.size())] ^= static_cast<char>(1 + random.below(255));
    attempt(flipped);
  }
}

TEST(StreamDecoder, GivesWholeCharactersAndLosesNothing) {
  for (const auto& tokenizer : all_kinds()) {
    StreamDecoder decoder(tokenizer);
    for (const std::string& text : nasty_texts()) {
      std::string out;
      for (const int32_t token : tokenizer->encode(text)) {
        const std::string ready = decoder.push(token);
        if (valid_utf8(text)) {
          EXPECT_TRUE(valid_utf8(ready));
        }
        out += ready;
      }
      const std::string rest = decoder.finish();
      EXPECT_LE(rest.size(), 3U);
      EXPECT_EQ(out + rest, text);
      EXPECT_EQ(decoder.finish(), "");
    }
  }
}

TEST(StreamDecoder, HoldsBackOnlyWhatMayStillBecomeACharacter) {
  StreamDecoder decoder(make_tokenizer("bytes"));
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push(kByteEnd), "");
  EXPECT_EQ(decoder.push(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push('b'),
            "\xE2"
            "b");  // not a character at all
  EXPECT_EQ(decoder.push(0xFF), "\xFF");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.finish(), "\xF0");
}

}  // namespace
}  // namespace rondo
