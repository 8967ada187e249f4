// Shared by the tests of rondo/data: generated text, awkward bytes, compressors, a small
// SentencePiece model.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/random.h"
#include "rondo/data/tokenizer.h"
#include "tests/base/base_test_util.h"

namespace rondo::testing {

// Lines of words from a small vocabulary, with some structure to learn, UTF-8 among them.
inline std::string made_up_text(int64_t lines, uint64_t seed) {
  static const std::vector<std::string> kWords = {
      "the",    "river", "carries", "its",  "stones", "slowly", "toward", "a",     "distant",
      "sea",    "and",   "nobody",  "asks", "why",    "über",   "straße", "café",  "Москва",
      "日本語", "into",  "return",  "=",    "(x",     "+",      "y);",    "theme", "again"};
  CounterRandom random(seed, "made up text");
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    const uint64_t count = random.below(12);
    for (uint64_t i = 0; i < count; ++i) {
      text +=
          (i > 0 ? (random.below(9) == 0 ? "  " : " ") : "") + kWords[random.below(kWords.size())];
    }
    text += random.below(10) == 0 ? "\r\n" : "\n";
  }
  return text;
}

// `size` bytes, any of 256; from few values if `choices` is given.
inline std::string random_bytes(size_t size, uint64_t seed, const std::string& choices = "") {
  CounterRandom random(seed, "random bytes");
  std::string text(size, '\0');
  for (char& c : text) {
    c = choices.empty() ? static_cast<char>(random.below(256))
                        : choices[random.below(choices.size())];
  }
  return text;
}

// Texts of which tokenizers and caches tend to lose something.
inline std::vector<std::string> nasty_texts() {
  using namespace std::string_literals;
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) {
    all_bytes.push_back(static_cast<char>(i));
  }
  std::vector<std::string> texts = {
      ""s,
      " "s,
      "  leading and trailing  "s,
      "\n"s,
      "\r\n\r\n"s,
      "a\tb\t\tc\v\f"s,
      "\0"s,
      "nul\0inside\0"s,
      all_bytes,
      all_bytes + all_bytes,
      "<unk><s></s><pad><0x41> <0x0A>"s,
      "\xE2\x96\x81word\xE2\x96\x81 \xE2\x96\x85"s,  // characters that SentencePiece reserves
      "caf\xC3"s,                                    // cut within a character
      "\xA9 begins with the rest of one"s,
      "\xC0\x80 overlong, \xED\xA0\x80 surrogate, \xF4\x90\x80\x80 too far, \xFF\xFE"s,
      "\xF0\x9F\x98\x80\xF0\x9F\x98 emoji, whole and cut"s,
      "\xEF\xBB\xBF byte order mark \xEF\xBF\xBD replacement \xEF\xBF\xBF"s,
      "ﬁ ligature, Ａ full width, e\xCC\x81 combining, \xC2\xA0 hard space, \xE3\x80\x80"s,
      std::string(3000, ' '),
      std::string(3000, 'z'),
      made_up_text(30, 5),
  };
  for (uint64_t seed = 0; seed < 40; ++seed) {
    texts.push_back(random_bytes(200, seed));
    texts.push_back(random_bytes(200, seed, "a \n\xE2\x96\x81\xC3\xA9\x80\xF0\x9F"));
  }
  return texts;
}

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

inline std::string zstd(const std::string& text) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(::ZSTD_createCCtx(),
                                                                   &::ZSTD_freeCCtx);
  ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const size_t size =
      ::ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size());
  EXPECT_EQ(::ZSTD_isError(size), 0U);
  out.resize(size);
  return out;
}

// A model of this type and size, trained once per process on generated text.
inline std::shared_ptr<const Tokenizer> small_model(const std::string& type = "bpe",
                                                    int64_t vocabulary = 400) {
  static const TempDir folder;
  static std::map<std::string, std::shared_ptr<const Tokenizer>> models;
  const std::string key = type + std::to_string(vocabulary);
  std::shared_ptr<const Tokenizer>& model = models[key];
  if (!model) {
    const std::string text = folder.file(key + ".txt");
    spill(text, made_up_text(400, 1));
    TokenizerTraining training;
    training.sources = {text};
    training.output = folder.file(key + ".model");
    training.vocabulary = vocabulary;
    training.type = type;
    train_tokenizer(training);
    model = make_tokenizer(training.output);
  }
  return model;
}

// `whole` truncated (every third time) or with one bit flipped.
inline std::string damaged(const std::string& whole, int number, CounterRandom& random) {
  std::string text = whole;
  if (number % 3 == 0) {
    text.resize(random.below(whole.size()));
  } else {
    text[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
  }
  return text;
}

}  // namespace rondo::testing
