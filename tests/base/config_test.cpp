// Tests of rondo/base/config.h: reading, every form of error, --set, dumping and help. The tests
// of ConfigTable alone are in config_table_test.cpp.
#include "rondo/base/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rondo/base/limits.h"
#include "tests/base/base_test_util.h"

namespace config_test {

// In a separate namespace, as in a program that uses the library.
struct SampleDepth {
  std::string scheme = "vanilla";
  int64_t levels = 6;
  std::vector<int64_t> loops;
  std::vector<std::vector<int64_t>> groups;
};
template <class V>
void describe(V& v, SampleDepth& c) {
  v.field("scheme", c.scheme, "how levels share weights",
          rondo::one_of({"vanilla", "ring", "universal"}));
  v.field("levels", c.levels, "number of levels", rondo::at_least(1));
  v.field("loops", c.loops, "loops of each level", rondo::between(1, 8));
  v.field("groups", c.groups, "groups of each loop");
}

struct SampleModel {
  int64_t width = 512;
  double dropout = 0.1;
  SampleDepth depth;
  bool bias = false;  // described after the section: dumping must handle this order
  std::vector<double> rates;
  std::vector<std::string> tags;
  std::string name = "model";
};
template <class V>
void describe(V& v, SampleModel& c) {
  v.field("width", c.width, "model width d", rondo::between(1, 1 << 20));
  v.field("dropout", c.dropout, "share of activations dropped", rondo::between(0, 1));
  v.section("depth", c.depth, "weight sharing over depth");
  v.field("bias", c.bias, "biases in linear maps");
  v.field("rates", c.rates, "rates");
  v.field("tags", c.tags, "tags", rondo::one_of({"a", "b"}));
  v.field("name", c.name, "a name");
}

struct RenamedConfig {
  int64_t shade = 1;
};
template <class V>
void describe(V& v, RenamedConfig& c) {
  v.renamed("tone", "shade");
  v.field("shade", c.shade, "a shade", rondo::at_least(1));
}

bool operator==(const SampleDepth& a, const SampleDepth& b) {
  return a.scheme == b.scheme && a.levels == b.levels && a.loops == b.loops && a.groups == b.groups;
}
bool operator==(const SampleModel& a, const SampleModel& b) {
  return a.width == b.width && a.dropout == b.dropout && a.depth == b.depth && a.bias == b.bias &&
         a.rates == b.rates && a.tags == b.tags && a.name == b.name;
}

}  // namespace config_test

namespace rondo {
namespace {

using config_test::SampleDepth;
using config_test::SampleModel;
using testing::error_of;
using testing::spill;
using testing::TempDir;

SampleModel read_model(const std::string& text, const std::vector<std::string>& sets = {}) {
  ConfigTable table = ConfigTable::from_string(text, "lm.toml");
  for (const std::string& assignment : sets) {
    table.set(assignment);
  }
  SampleModel config;
  read_config(table, "model", config);
  return config;
}

// The message of the Error{bad_input} that reading `text` must throw.
std::string refusal(const std::string& text, const std::vector<std::string>& sets = {}) {
  const Error error = error_of([&] { read_model(text, sets); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  return error.message();
}

TEST(ConfigTest, ReadsEveryType) {
  const SampleModel config = read_model(R"(
[model]
width = 256
dropout = 0
bias = true
rates = [0.5, 1, 1e-3]
tags = ["a", "b", "a"]
name = "caf\u00e9"
[model.depth]
scheme = "ring"
levels = 12
loops = [1, 2, 3]
groups = [[1, 2], [], [3]]
)");
  EXPECT_EQ(config.width, 256);
  EXPECT_EQ(config.dropout, 0.0);
  EXPECT_TRUE(config.bias);
  EXPECT_EQ(config.rates, (std::vector<double>{0.5, 1, 1e-3}));
  EXPECT_EQ(config.tags, (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_EQ(config.name, "caf\xC3\xA9");
  EXPECT_EQ(config.depth.scheme, "ring");
  EXPECT_EQ(config.depth.levels, 12);
  EXPECT_EQ(config.depth.loops, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(config.depth.groups, (std::vector<std::vector<int64_t>>{{1, 2}, {}, {3}}));
}

TEST(ConfigTest, AbsentValuesKeepWhatWasThere) {
  SampleModel config;
  config.width = 77;
  config.depth.loops = {4};
  read_config(ConfigTable::from_string("[model]\nbias = true", "a"), "model", config);
  EXPECT_EQ(config.width, 77);
  EXPECT_EQ(config.depth.loops, (std::vector<int64_t>{4}));
  EXPECT_TRUE(config.bias);
  const SampleModel before = config;
  read_config(ConfigTable(), "model", config);
  EXPECT_EQ(config, before);
}

TEST(ConfigTest, AnErrorLeavesTheStructAsItWas) {
  SampleModel config;
  const auto table = ConfigTable::from_string("width = 3\nbias = 4", "a");
  EXPECT_THROW(read_config(table, "", config), Error);
  EXPECT_EQ(config, SampleModel());
}

TEST(ConfigTest, UnknownKeysNameTheNearest) {
  EXPECT_EQ(refusal("[model]\nwidht = 3"),
            "lm.toml:2: model.widht: unknown key; did you mean 'width'?");
  EXPECT_EQ(refusal("[model]\n\n[model.depth]\nlevel = 3"),
            "lm.toml:4: model.depth.level: unknown key; did you mean 'levels'?");
  EXPECT_EQ(refusal("[model]\nwidth = 3\nzzz = 3"), "lm.toml:3: model.zzz: unknown key");
  EXPECT_EQ(refusal("[model.dept]\nx = 3"),
            "lm.toml:1: model.dept: unknown key; did you mean 'depth'?");
}

TEST(ConfigTest, AKeyOneTableTooHighIsFound) {
  EXPECT_EQ(refusal("[model]\nlevels = 3"),
            "lm.toml:2: model.levels: unknown key; did you mean 'depth.levels'?");
}

TEST(ConfigTest, UnknownKeysComeWithTheKnownOnes) {
  const Error error = error_of([] { read_model("[model.depth]\nzzz = 3"); });
  EXPECT_EQ(error.advice(), "valid keys here: scheme, levels, loops, groups");
}

TEST(ConfigTest, TheFirstUnknownKeyInTheFileIsNamed) {
  EXPECT_EQ(refusal("[model]\nzz = 1\nyy = 2\nxx = 3"), "lm.toml:2: model.zz: unknown key");
}

TEST(ConfigTest, EarlierNamesOfKeysStayReadable) {
  config_test::RenamedConfig c;
  const auto read = [&](const char* text) {
    read_config(ConfigTable::from_string(text, "old.toml"), "", c);
  };
  read("tone = 3");
  EXPECT_EQ(c.shade, 3);
  EXPECT_EQ(dump_config(c, ""), "shade = 3\n");
  EXPECT_EQ(error_of([&] { read("tone = 0"); }).message(),
            "old.toml:1: shade: expected a whole number at least 1, got 0");
  EXPECT_EQ(error_of([&] { read("tone = 3\nshade = 4"); }).message(),
            "old.toml:1: shade: given twice, as shade and under its old name tone");
  EXPECT_EQ(error_of([&] { read("tome = 3"); }).message(), "old.toml:1: tome: unknown key");
  EXPECT_EQ(c.shade, 3);
}

TEST(ConfigTest, WrongTypesSayExpectedAndGot) {
  EXPECT_EQ(refusal("[model]\n\nwidth = \"abc\""),
            "lm.toml:3: model.width: expected a whole number between 1 and 1048576, got \"abc\"");
  EXPECT_EQ(refusal("[model]\nwidth = 3.0"),
            "lm.toml:2: model.width: expected a whole number between 1 and 1048576, got 3.0");
  EXPECT_EQ(refusal("[model]\ndropout = true"),
            "lm.toml:2: model.dropout: expected a number between 0 and 1, got true");
  EXPECT_EQ(refusal("[model]\nbias = 1"), "lm.toml:2: model.bias: expected true or false, got 1");
  EXPECT_EQ(refusal("[model]\nname = 1979-05-27"),
            "lm.toml:2: model.name: expected text, got a date or time");
  EXPECT_EQ(refusal("[model]\nname = 4"), "lm.toml:2: model.name: expected text, got 4");
  EXPECT_EQ(refusal("[model]\nrates = 1"),
            "lm.toml:2: model.rates: expected a list of numbers, got 1");
  EXPECT_EQ(refusal("[model.name]\nx = 1"), "lm.toml:1: model.name: expected text, got a table");
  EXPECT_EQ(
      refusal("[model]\nwidth = [1, \"a\"]"),
      "lm.toml:2: model.width: expected a whole number between 1 and 1048576, got [1, \"a\"]");
  EXPECT_EQ(refusal("[model]\ndepth = 3"), "lm.toml:2: model.depth: expected a table, got 3");
  EXPECT_EQ(refusal("model = 3"), "lm.toml:1: model: expected a table, got 3");
}

TEST(ConfigTest, ListsNameTheElement) {
  EXPECT_EQ(refusal("[model]\nrates = [\n  1,\n  \"x\"\n]"),
            "lm.toml:4: model.rates[1]: expected a number, got \"x\"");
  EXPECT_EQ(refusal("[model.depth]\nloops = [1, 9]"),
            "lm.toml:2: model.depth.loops[1]: expected a whole number between 1 and 8, got 9");
  EXPECT_EQ(refusal("[model.depth]\nloops = 1"),
            "lm.toml:2: model.depth.loops: expected a list of whole numbers, each between 1 and 8, "
            "got 1");
  EXPECT_EQ(refusal("[model.depth]\ngroups = [[1], [2, true]]"),
            "lm.toml:2: model.depth.groups[1][1]: expected a whole number, got true");
  EXPECT_EQ(refusal("[model.depth]\ngroups = [1]"),
            "lm.toml:2: model.depth.groups[0]: expected a list of whole numbers, got 1");
  EXPECT_EQ(refusal("[model]\ntags = [\"a\", \"c\"]"),
            "lm.toml:2: model.tags[1]: expected one of \"a\", \"b\", got \"c\"");
}

TEST(ConfigTest, ConstraintsAreInclusive) {
  EXPECT_EQ(read_model("[model]\nwidth = 1").width, 1);
  EXPECT_EQ(read_model("[model]\nwidth = 1048576").width, 1048576);
  EXPECT_EQ(refusal("[model]\nwidth = 0"),
            "lm.toml:2: model.width: expected a whole number between 1 and 1048576, got 0");
  EXPECT_EQ(refusal("[model]\nwidth = 1048577"),
            "lm.toml:2: model.width: expected a whole number between 1 and 1048576, got 1048577");
  EXPECT_EQ(refusal("[model.depth]\nlevels = 0"),
            "lm.toml:2: model.depth.levels: expected a whole number at least 1, got 0");
  EXPECT_EQ(refusal("[model]\ndropout = nan"),
            "lm.toml:2: model.dropout: expected a number between 0 and 1, got nan");
  EXPECT_EQ(refusal("[model]\ndropout = 1.5"),
            "lm.toml:2: model.dropout: expected a number between 0 and 1, got 1.5");
}

TEST(ConfigTest, ChoicesNameTheNearest) {
  EXPECT_EQ(refusal("[model.depth]\nscheme = \"rign\""),
            "lm.toml:2: model.depth.scheme: expected one of \"vanilla\", \"ring\", \"universal\", "
            "got \"rign\"; did you mean 'ring'?");
  EXPECT_EQ(refusal("[model.depth]\nscheme = \"q\""),
            "lm.toml:2: model.depth.scheme: expected one of \"vanilla\", \"ring\", \"universal\", "
            "got \"q\"");
}

TEST(ConfigTest, IgnoredKeysBelongToOthers) {
  const auto table =
      ConfigTable::from_string("width = 9\nkind = \"lm\"\n[depth]\nextra = 1\n[other]\nx = 1", "a");
  SampleModel config;
  read_config(table, "", config, {"kind", "other", "depth.extra"});
  EXPECT_EQ(config.width, 9);
  EXPECT_EQ(error_of([&] {
              read_config(table, "", config, {"kind", "depth.extra"});
            }).message(),
            "a:5: other: unknown key");
  EXPECT_EQ(error_of([&] {
              read_config(table, "", config, {"kind", "other"});
            }).message(),
            "a:4: depth.extra: unknown key");
}

TEST(ConfigTest, SetOverridesAndCreates) {
  const SampleModel config =
      read_model("[model]\nwidth = 3",
                 {"model.width=256", "model.depth.scheme=ring", "model.depth.loops=[1, 2]",
                  "model.dropout = 1e-3", "model.bias=true", "model.name=a b=c"});
  EXPECT_EQ(config.width, 256);
  EXPECT_EQ(config.depth.scheme, "ring");
  EXPECT_EQ(config.depth.loops, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(config.dropout, 1e-3);
  EXPECT_TRUE(config.bias);
  EXPECT_EQ(config.name, "a b=c");
}

TEST(ConfigTest, SetTextNeedsNoQuotes) {
  EXPECT_EQ(read_model("", {"model.name=\"42\""}).name, "42");
  EXPECT_EQ(read_model("", {"model.name=42"}).name, "42");
  EXPECT_EQ(read_model("", {"model.name=true"}).name, "true");
  EXPECT_EQ(read_model("", {"model.name=2024-01-01"}).name, "2024-01-01");
  EXPECT_EQ(read_model("", {"model.name="}).name, "");
  EXPECT_EQ(read_model("", {"model.name=runs/a.b"}).name, "runs/a.b");
}

TEST(ConfigTest, SetInlineTableReplacesTheTable) {
  const SampleModel config =
      read_model("[model]\nwidth = 3\nbias = true", {"model={width = 5, depth.levels = 2}"});
  EXPECT_EQ(config.width, 5);
  EXPECT_EQ(config.depth.levels, 2);
  EXPECT_FALSE(config.bias);
}

TEST(ConfigTest, SetErrorsNameSetAsThePlace) {
  EXPECT_EQ(refusal("", {"model.width=abc"}),
            "--set model.width: expected a whole number between 1 and 1048576, got \"abc\"");
  EXPECT_EQ(refusal("", {"model.widht=3"}),
            "--set model.widht: unknown key; did you mean 'width'?");
  EXPECT_EQ(refusal("[model]\nwidth = 3", {"model.width=0"}),
            "--set model.width: expected a whole number between 1 and 1048576, got 0");
  EXPECT_EQ(refusal("", {"model.tags=[1]"}),
            "--set model.tags[0]: expected one of \"a\", \"b\", got 1");
}

TEST(ConfigTest, FilesAreReadAndBounded) {
  const TempDir dir;
  spill(dir.file("a.toml"), "width = 8");
  SampleModel config;
  read_config(ConfigTable::from_file(dir.file("a.toml")), "", config);
  EXPECT_EQ(config.width, 8);
  spill(dir.file("big.toml"), std::string(static_cast<size_t>(kMaxConfigBytes) + 1, '#'));
  EXPECT_EQ(error_of([&] { ConfigTable::from_file(dir.file("big.toml")); }).code(),
            ExitCode::bad_input);
  EXPECT_EQ(error_of([&] { ConfigTable::from_file(dir.file("none.toml")); }).code(), ExitCode::io);
}

TEST(ConfigTest, SectionsKeepTheirPlace) {
  const auto table = ConfigTable::from_string("[model]\n[model.depth]\nlevels = 0", "a");
  const ConfigTable section = table.section("model");
  SampleDepth config;
  EXPECT_EQ(error_of([&] { read_config(section, "depth", config); }).message(),
            "a:3: model.depth.levels: expected a whole number at least 1, got 0");
  EXPECT_TRUE(table.section("none").keys().empty());
  EXPECT_EQ(error_of([&] { section.section("depth.levels"); }).message(),
            "a:3: model.depth.levels: expected a table, got 0");
}

SampleModel awkward_config() {
  SampleModel config;
  config.width = 1 << 20;
  config.dropout = 0.1 + 0.2 - 0.3 + 0.25;
  config.rates = {1.0 / 3, 1, -0.0, 1e300, 5e-324, 123456789012345680.0, INFINITY, -INFINITY};
  config.tags = {"b", "a"};
  config.name = "quote \" back \\ line\n tab\t bell\x07 del\x7f caf\xC3\xA9 # = [x]";
  config.depth.scheme = "ring";
  config.depth.loops = {1, 8};
  config.depth.groups = {{std::numeric_limits<int64_t>::min()}, {}, {1, 2}};
  config.bias = true;
  return config;
}

TEST(ConfigTest, DumpReadsBackExactly) {
  for (const std::string prefix : {"", "model", "a.model"}) {
    for (const SampleModel& config : {SampleModel(), awkward_config()}) {
      const std::string text = dump_config(config, prefix);
      SampleModel back;
      read_config(ConfigTable::from_string(text, "dump"), prefix, back);
      EXPECT_EQ(back, config) << text;
    }
  }
}

TEST(ConfigTest, DumpIsReadable) {
  EXPECT_EQ(dump_config(SampleModel(), "model"),
            "[model]\nwidth = 512\ndropout = 0.1\nbias = false\nrates = []\ntags = []\n"
            "name = \"model\"\n\n[model.depth]\nscheme = \"vanilla\"\nlevels = 6\nloops = []\n"
            "groups = []\n");
}

TEST(ConfigTest, HelpListsEveryField) {
  const std::vector<FieldHelp> help = config_help(SampleModel());
  ASSERT_EQ(help.size(), 10U);
  EXPECT_EQ(help[0].key, "width");
  EXPECT_EQ(help[0].type, "whole number");
  EXPECT_EQ(help[0].default_text, "512");
  EXPECT_EQ(help[0].allowed, "between 1 and 1048576");
  EXPECT_EQ(help[0].help, "model width d");
  EXPECT_EQ(help[2].key, "depth.scheme");
  EXPECT_EQ(help[2].default_text, "\"vanilla\"");
  EXPECT_EQ(help[2].allowed, "one of \"vanilla\", \"ring\", \"universal\"");
  EXPECT_EQ(help[5].type, "list of lists of whole numbers");
  EXPECT_EQ(help[6].key, "bias");
  EXPECT_EQ(help[6].allowed, "");
  EXPECT_EQ(help[7].type, "list of numbers");
}

}  // namespace
}  // namespace rondo
