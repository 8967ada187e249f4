// Tests of ConfigTable in rondo/base/config.h: parsing, --set, bounds and look-ups.
#include <gtest/gtest.h>

#include "rondo/base/config.h"
#include "rondo/base/limits.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;

TEST(ConfigTableTest, MalformedSetIsAUsageError) {
  const auto message = [](const std::string& assignment) {
    ConfigTable table = ConfigTable::from_string("width = 3", "a");
    const Error error = error_of([&] { table.set(assignment); });
    EXPECT_EQ(error.code(), ExitCode::usage) << assignment;
    EXPECT_FALSE(error.advice().empty());
    return error.message();
  };
  EXPECT_EQ(message("width"), "--set width: expected key=value, got no '='");
  EXPECT_EQ(message("=3"),
            "--set =3: expected a dotted key of letters, digits, '_' and '-', "
            "got ''");
  EXPECT_EQ(message("a..b=3"),
            "--set a..b=3: expected a dotted key of letters, digits, '_' and "
            "'-', got 'a..b'");
  EXPECT_EQ(message("a b=3"),
            "--set a b=3: expected a dotted key of letters, digits, '_' and "
            "'-', got 'a b'");
  EXPECT_EQ(message("width.x=3"), "--set width.x=3: expected width to be a table, got 3");
  EXPECT_EQ(message("a=[1,").substr(0, 37), "--set a=[1,: the value is not TOML: E");
  EXPECT_EQ(message("a=\"x").substr(0, 36), "--set a=\"x: the value is not TOML: E");
  EXPECT_EQ(message("a=[1]\nb=2"),
            "--set a=[1]?b=2: the value is not TOML: expected one value, got several lines");
  EXPECT_EQ(message("a=[\xC3\xA9]"),
            "--set a=[\xC3\xA9]: the value is not TOML: expected only ASCII outside quotes, got "
            "'\xC3\xA9'");
  EXPECT_EQ(message("a=\xFF"), "--set a=?: expected UTF-8, got other bytes");
  std::string deep = "a";
  for (int i = 0; i < kMaxConfigDepth; ++i) {
    deep += ".a";
  }
  EXPECT_NE(message(deep + "=1").find("at most 32 dotted parts, got 33"), std::string::npos);
}

TEST(ConfigTableTest, ParseErrorsHaveLineAndColumn) {
  const Error error =
      error_of([] { ConfigTable::from_string("[model]\nwidth = = 3\n", "lm.toml"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message().substr(0, 12), "lm.toml:2:9:");
  EXPECT_GT(error.message().size(), 20U);  // and the parser's own message
  for (const std::string text :
       {"[", "[[[s", "[=", "[]", "a.=1", "a", "a = ", "x={,", "\"", "a=1 b"}) {
    EXPECT_EQ(error_of([&] { ConfigTable::from_string(text, "a"); }).code(), ExitCode::bad_input)
        << text;
  }
}

TEST(ConfigTableTest, DeepKeysAreRefusedAndNotRecursedInto) {
  std::string key = "a";
  for (int i = 0; i < 200000; ++i) {
    key += ".a";
  }
  for (const std::string& text : {key + " = 1", "[" + key + "]", "x = {" + key + " = 1}",
                                  "s = \"\"\"q\"\"\"\"\ny = 1\n" + key + " = 1"}) {
    const Error error = error_of([&] { ConfigTable::from_string(text, "a"); });
    EXPECT_NE(error.message().find("expected a key of at most 32 dotted parts"), std::string::npos);
  }
  EXPECT_THROW(ConfigTable::from_string("x = " + std::string(100000, '['), "a"), Error);
}

TEST(ConfigTableTest, DotsInTextCommentsAndNumbersAreNoDepth) {
  const std::string dots(100, '.');
  const auto table = ConfigTable::from_string(
      "a = \"" + dots + "\\\"" + dots + "\" # it's " + dots + "\nb = '" + dots + "'\nc = \"\"\"\n" +
          dots + "\n\"" + dots + "\"\"\"\"\nd = [0.1, 0.2]\ne = '''" + dots + "'''",
      "a");
  EXPECT_EQ(table.get_string("b"), dots);
  EXPECT_EQ(table.get_string("a"), dots + "\"" + dots);
  EXPECT_EQ(table.get_string("e"), dots);
}

TEST(ConfigTableTest, OtherAlphabetsNeedQuotes) {
  EXPECT_EQ(error_of([] { ConfigTable::from_string("\na = \xC3\x9E", "a"); }).message(),
            "a:2: expected only ASCII outside quotes, got '\xC3\x9E'");
  auto table = ConfigTable::from_string("\xEF\xBB\xBF# caf\xC3\xA9\na = \"caf\xC3\xA9\"", "a");
  EXPECT_EQ(table.get_string("a"), "caf\xC3\xA9");
  table.set("a=na\xC3\xAFve");
  EXPECT_EQ(table.get_string("a"), "na\xC3\xAFve");
  table.set("a=one\nb=2");  // not TOML, so text as typed
  EXPECT_EQ(table.get_string("a"), "one\nb=2");
}

TEST(ConfigTableTest, TableLooksUp) {
  auto table = ConfigTable::from_string("kind = \"lm\"\n[model]\nwidth = 3\n[model.depth]\n", "a");
  EXPECT_TRUE(table.has("model.width"));
  EXPECT_FALSE(table.has("model.height"));
  EXPECT_FALSE(table.has("model.width.x"));
  EXPECT_TRUE(table.is_table("model"));
  EXPECT_FALSE(table.is_table("kind"));
  EXPECT_EQ(table.get_string("kind"), "lm");
  EXPECT_EQ(table.get_string("none"), std::nullopt);
  EXPECT_EQ(error_of([&] { table.get_string("model.width"); }).message(),
            "a:3: model.width: expected text, got 3");
  EXPECT_EQ(table.keys("model"), (std::vector<std::string>{"width", "depth"}));
  EXPECT_EQ(table.keys(), (std::vector<std::string>{"kind", "model"}));
  EXPECT_EQ(table.where("model.width"), "a:3: model.width");
  EXPECT_EQ(table.where("model.none"), "a: model.none");
  table.set("model.width=4");
  EXPECT_EQ(table.where("model.width"), "--set model.width");
}

TEST(ConfigTableTest, CopiesAreIndependent) {
  auto table = ConfigTable::from_string("a = \"x\"", "a");
  ConfigTable copy = table;
  copy.set("a=y");
  EXPECT_EQ(table.get_string("a"), "x");
  table = copy;
  EXPECT_EQ(table.get_string("a"), "y");
}

TEST(ConfigTableTest, RequireKnown) {
  const auto table = ConfigTable::from_string("[model]\n[trian]\n", "a");
  EXPECT_EQ(error_of([&] {
              table.require_known("", {"model", "train"});
            }).message(),
            "a:2: trian: unknown key; did you mean 'train'?");
  EXPECT_NO_THROW(table.require_known("", {"model", "trian"}));
}

}  // namespace
}  // namespace rondo
