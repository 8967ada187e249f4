// Tests of rondo/base/text.h.
#include "rondo/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rondo {
namespace {

using Names = std::vector<std::string>;

TEST(TextTest, EditDistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("width", "widths"), 1);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2);
}

TEST(TextTest, EditDistanceCountsASwapOnce) {
  EXPECT_EQ(edit_distance("widht", "width"), 1);
  EXPECT_EQ(edit_distance("ba", "ab"), 1);
  EXPECT_EQ(edit_distance("abcd", "badc"), 2);
}

TEST(TextTest, EditDistanceIsSymmetric) {
  const Names words = {"ring", "rign", "universal", "one-wide", "", "vanilla", "rin"};
  for (const std::string& a : words) {
    for (const std::string& b : words) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
    }
  }
}

const Names& model_names() {
  static const Names names = {
      "ringformer/mt-large", "ringformer/mt-base", "ringformer/image-small", "sret/t", "sret/tl",
      "sret/tl-global",      "brt/slide-12l",      "brt/rec-fixed-skip"};
  return names;
}

TEST(TextTest, NearestFindsTypingSlips) {
  EXPECT_EQ(nearest("widht", {"depth", "width", "bias"}), "width");
  EXPECT_EQ(nearest("ringformer/mt-bsae", model_names()), "ringformer/mt-base");
  EXPECT_EQ(nearest("brt/slide-12", model_names()), "brt/slide-12l");
  EXPECT_EQ(nearest("WIDTH", {"depth", "width"}), "width");
}

TEST(TextTest, NearestFindsBeginnings) {
  EXPECT_EQ(nearest("ringformer/mt", model_names()), "ringformer/mt-base");
  EXPECT_EQ(nearest("ringformer/image", model_names()), "ringformer/image-small");
}

TEST(TextTest, NearestFindsAMissingOrWrongFamily) {
  EXPECT_EQ(nearest("tl-global", model_names()), "sret/tl-global");
  EXPECT_EQ(nearest("t", model_names()), "sret/t");
  EXPECT_EQ(nearest("sret/slide-12l", model_names()), "brt/slide-12l");
  EXPECT_EQ(nearest("levels", {"width", "depth.levels"}), "depth.levels");
}

TEST(TextTest, NearestFindsPieces) {
  EXPECT_EQ(nearest("fixed", model_names()), "brt/rec-fixed-skip");
  EXPECT_EQ(nearest("model_width", {"width", "bias"}), "width");
}

TEST(TextTest, NearestPrefersFewerEditsToBeginnings) {
  EXPECT_EQ(nearest("drop", {"dropout", "crop"}), "crop");
}

TEST(TextTest, NearestKeepsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest("gpt", model_names()), std::nullopt);
  EXPECT_EQ(nearest("x", {"a", "b"}), std::nullopt);
  EXPECT_EQ(nearest("", {"a"}), std::nullopt);
  EXPECT_EQ(nearest("width", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'a'), {"a"}), std::nullopt);
}

TEST(TextTest, DidYouMean) {
  EXPECT_EQ(did_you_mean("widht", {"width"}), "did you mean 'width'?");
  EXPECT_EQ(did_you_mean("zzz", {"width"}), "");
}

TEST(TextTest, WithCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(8943616), "8,943,616");
  EXPECT_EQ(with_commas(-100), "-100");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(with_commas(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(TextTest, SiCount) {
  EXPECT_EQ(si_count(1.3768e9), "1.38 G");
  EXPECT_EQ(si_count(4755979), "4.76 M");
  EXPECT_EQ(si_count(950), "950");
  EXPECT_EQ(si_count(0.25), "0.25");
  EXPECT_EQ(si_count(0), "0");
  EXPECT_EQ(si_count(999.6), "1 k");
  EXPECT_EQ(si_count(999999), "1 M");
  EXPECT_EQ(si_count(-20.9e6), "-20.9 M");
  EXPECT_EQ(si_count(1e21), "1e+21");
  EXPECT_EQ(si_count(INFINITY), "inf");
}

TEST(TextTest, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1 KiB");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(1010 * 1024), "1010 KiB");
  EXPECT_EQ(human_bytes((int64_t{1} << 20) - 1), "1 MiB");
  EXPECT_EQ(human_bytes(int64_t{5} << 30), "5 GiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<int64_t>::max()), "8 EiB");
}

TEST(TextTest, Split) {
  EXPECT_EQ(split("a.b.c", '.'), (Names{"a", "b", "c"}));
  EXPECT_EQ(split("", '.'), (Names{""}));
  EXPECT_EQ(split("a,,b,", ','), (Names{"a", "", "b", ""}));
}

TEST(TextTest, GlobMatch) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*", "encoder.level.3"));
  EXPECT_TRUE(glob_match("encoder.*.probabilities", "encoder.level.3.attention.probabilities"));
  EXPECT_TRUE(glob_match("level.?", "level.3"));
  EXPECT_FALSE(glob_match("level.?", "level.12"));
  EXPECT_FALSE(glob_match("level.?", "level."));
  EXPECT_TRUE(glob_match("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(glob_match("a*b*c", "a-b-b-"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("a", ""));
  EXPECT_TRUE(glob_match("**a**", "bab"));
}

TEST(TextTest, GlobMatchDoesNotExplode) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) {
    pattern += "a*";
  }
  EXPECT_FALSE(glob_match(pattern + "b", std::string(20000, 'a')));  // exponential if naive
}

TEST(TextTest, ValidUtf8) {
  EXPECT_EQ(replace_invalid_utf8("a\xC3\xA9\xFFz\xE2\x82"),
            "a\xC3\xA9\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(valid_utf8(""));
  EXPECT_TRUE(valid_utf8("plain"));
  EXPECT_TRUE(valid_utf8("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8E\xB5"));
  EXPECT_FALSE(valid_utf8("\x80"));              // a continuation alone
  EXPECT_FALSE(valid_utf8("\xC3"));              // cut short
  EXPECT_FALSE(valid_utf8("\xE2\x82"));          // cut short
  EXPECT_FALSE(valid_utf8("\xC0\xAF"));          // overlong '/'
  EXPECT_FALSE(valid_utf8("\xE0\x80\xAF"));      // overlong '/'
  EXPECT_FALSE(valid_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(valid_utf8("\xF4\x90\x80\x80"));  // past U+10FFFF
  EXPECT_FALSE(valid_utf8("\xFF"));
}

TEST(TextTest, PrintableIsSafeAndShort) {
  EXPECT_EQ(printable("width"), "width");
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a?[31m??");
  EXPECT_EQ(printable("\xC3\xA9\xFF"), "\xC3\xA9?");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "?2J");  // an 8-bit escape
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("ab\xC3\xA9", 3), "ab...");  // no half character
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(TextTest, Join) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"", "b"}, "-"), "-b");
}

TEST(TextTest, BlankIsNothingButSpace) {
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \t\r\n\v\f"));
  EXPECT_FALSE(is_blank("  x "));
  EXPECT_FALSE(is_blank(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace rondo
