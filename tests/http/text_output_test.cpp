// Text sent to clients: whole characters, U+FFFD for invalid bytes, an end at a stop string,
// however the bytes are split.
#include "rondo/http/text_output.h"

#include <gtest/gtest.h>

#include "rondo/base/random.h"
#include "rondo/base/text.h"

namespace rondo::http {
namespace {

std::string in_pieces(const std::string& bytes, size_t size, const std::vector<std::string>& stop) {
  TextOutput output(stop);
  std::string text;
  for (size_t at = 0; at < bytes.size() && !output.stopped(); at += size) {
    const std::string piece = output.push(std::string_view(bytes).substr(at, size));
    EXPECT_TRUE(valid_utf8(piece));
    text += piece;
  }
  return text + output.finish();
}

TEST(Utf8Stream, HoldsBackUntilACharacterIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xE2\x82"), "a");
  EXPECT_EQ(stream.push("\xAC!"), "\xE2\x82\xAC!");
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, WhatIsNoCharacterIsReplaced) {
  // A lone continuation byte, an overlong form, a surrogate, beyond U+10FFFF, a truncated
  // character.
  for (const char* bytes : {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82x"}) {
    Utf8Stream stream;
    std::string text = stream.push(bytes);
    text += stream.finish();
    EXPECT_TRUE(valid_utf8(text)) << printable(bytes);
    EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(TextOutput, DoesNotDependOnHowBytesAreCut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CounterRandom random(seed, "bytes");
    std::string bytes;
    for (int i = 0; i < 60; ++i) {
      const auto kind = random.below(3);
      if (kind == 0) bytes += static_cast<char>(random.below(256));
      if (kind == 1) bytes += "\xE2\x82\xAC";
      if (kind == 2) bytes += static_cast<char>('a' + random.below(3));
    }
    for (const std::vector<std::string>& stop :
         {std::vector<std::string>{}, {"ab"}, {"abc", "\xE2\x82\xAC\xE2\x82\xAC"}}) {
      const std::string whole = in_pieces(bytes, bytes.size(), stop);
      for (const size_t size : {1, 2, 3, 7}) EXPECT_EQ(in_pieces(bytes, size, stop), whole);
    }
  }
}

TEST(TextOutput, EndsBeforeTheFirstStopString) {
  EXPECT_EQ(in_pieces("one two three", 1, {"two", "e t"}), "on");
  EXPECT_EQ(in_pieces("one tw", 1, {"two"}), "one tw");
  EXPECT_EQ(in_pieces("aaab", 1, {"aab"}), "a");
  TextOutput output({"xyz"});
  EXPECT_EQ(output.push("abxy"), "ab");
  EXPECT_EQ(output.push("xyz"), "xy");
  EXPECT_TRUE(output.stopped());
  EXPECT_EQ(output.push("more"), "");
  EXPECT_EQ(output.finish(), "");
}

}  // namespace
}  // namespace rondo::http
