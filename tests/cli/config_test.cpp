// Configurations: rondo config agrees with the manual, every key can be set, and errors name the
// place and the nearest valid key.
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

class Kind : public ::testing::TestWithParam<const char*> {};

TEST_P(Kind, TheManualShowsWhatTheProgramPrints) {
  const std::string table = rondo_ok({"config", "--kind", GetParam()}).out;
  const std::string manual = slurp(RONDO_SOURCE_DIR "/docs/configuration.md");
  EXPECT_TRUE(contains(manual, "\n" + table))
      << "docs/configuration.md is stale: put the output of 'rondo config --kind " << GetParam()
      << "' in place of its table";
}

TEST_P(Kind, EveryKeyTakesItsDefault) {
  const TempDir folder;
  const std::string path = folder.file("plain.toml");
  spill(path, std::string("[model]\nkind = \"") + GetParam() + "\"\n");
  const std::string plain = rondo_ok({"info", path, "--toml"}).out;
  const nlohmann::json rows = rondo_ok({"config", "--kind", GetParam(), "--json"}).json();
  EXPECT_GE(rows.size(), 20u);
  for (const auto& row : rows) {
    const std::string key = row.at("key");
    const std::string value = row.at("default");
    EXPECT_FALSE(row.at("meaning").get<std::string>().empty()) << key;
    const Result set = rondo({"info", path, "--toml", "--set", key + "=" + value});
    EXPECT_EQ(set.code, 0) << key << ": " << set.err;
    EXPECT_EQ(set.out, plain) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kind,
                         ::testing::Values("encoder-decoder", "vision", "pyramid",
                                           "language-model"));

TEST(Config, TheManualShowsTheKeysOfTrainingToo) {
  const std::string manual = slurp(RONDO_SOURCE_DIR "/docs/configuration.md");
  const auto shown = [&](const std::string& kind, const std::string& section) {
    const std::string table = rondo_ok({"config", "--kind", kind, "--section", section}).out;
    EXPECT_TRUE(contains(manual, "\n" + table))
        << "docs/configuration.md is stale: put the output of 'rondo config --kind " << kind
        << " --section " << section << "' in place of its table";
  };
  for (const char* section : {"train", "optimizer", "schedule"}) shown("language-model", section);
  shown("language-model", "data");
  shown("encoder-decoder", "data");
  for (const char* section : {"data", "augment", "distill"}) {
    shown("vision", section);
    shown("pyramid", section);
  }
}

TEST(Config, SectionsAreThoseOfTheTask) {
  expect_refusal(rondo({"config", "--kind", "vision", "--section", "food"}), ExitCode::usage,
                 "have no section 'food'\n  choose one of model, data, augment, distill, train");
  for (const char* section : {"augment", "distill"}) {
    expect_refusal(rondo({"config", "--kind", "language-model", "--section", section}),
                   ExitCode::usage, "choose one of model, data, train, optimizer, schedule");
  }
  EXPECT_EQ(rondo_ok({"config", "--kind", "vision", "--section", "augment", "--json"})
                .json()
                .at(0)
                .at("key"),
            "augment.crop");
}

TEST(Config, NeedsAKindItKnows) {
  expect_refusal(rondo({"config"}), ExitCode::usage, "--kind is required");
  expect_refusal(rondo({"config", "--kind", "visoin"}), ExitCode::usage, "did you mean 'vision'?");
  expect_refusal(rondo({"config", "--kind", "42"}), ExitCode::usage,
                 "choose one of encoder-decoder");
}

Result info_of(const std::string& text, const Arguments& more = {}) {
  const TempDir folder;
  spill(folder.file("m.toml"), text);
  Arguments arguments = {"info", folder.file("m.toml"), "--toml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return rondo(arguments);
}

TEST(Config, MistakesInAFileHaveALine) {
  expect_refusal(info_of("[model]\nkind = \"vision\"\nwidht = 3\n"), ExitCode::bad_input,
                 "m.toml:3: model.widht: unknown key; did you mean 'width'?");
  expect_refusal(info_of("[model]\nkind = \"vision\"\nwidth = \"wide\"\n"), ExitCode::bad_input,
                 "m.toml:3: model.width");
  expect_refusal(info_of("[model]\nkind = \"vision\"\nwidth = 0\n"), ExitCode::bad_input,
                 "m.toml:3: model.width");
  expect_refusal(info_of("[model]\nkind = \"vision\"\n[model.depth]\nscheme = \"rign\"\n"),
                 ExitCode::bad_input, "m.toml:4: model.depth.scheme");
  expect_refusal(info_of("[model\n"), ExitCode::bad_input, "m.toml:1");
}

TEST(Config, AModelNeedsAKindOrABase) {
  expect_refusal(info_of("[model]\nwidth = 3\n"), ExitCode::bad_input, "model.kind: missing");
  expect_refusal(info_of("[model]\nkind = \"sculpture\"\n"), ExitCode::bad_input,
                 "unknown kind of network 'sculpture'");
  expect_refusal(info_of("[model]\nkind = \"pyramid\"\nbase = \"brt/xl-512\"\n"),
                 ExitCode::bad_input, "the kind of brt/xl-512");
}

TEST(Config, SetSaysWhatIsWrongWithIt) {
  expect_refusal(rondo({"info", "sret/t", "--set", "model.wdith=3"}), ExitCode::bad_input,
                 "--set model.wdith: unknown key; did you mean 'widths'?");
  expect_refusal(rondo({"info", "sret/t", "--set", "width"}), ExitCode::usage, "got no '='");
  expect_refusal(rondo({"info", "sret/t", "--set", "model.widths=[1,"}), ExitCode::usage,
                 "not TOML");
}

// Invalid combinations are detected before any weight is allocated.
TEST(Config, ImpossibleCombinations) {
  const auto refused = [](const char* model, const Arguments& sets, const char* part) {
    Arguments arguments = {"info", model};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    expect_refusal(rondo(arguments), ExitCode::bad_input, part);
  };
  refused("ringformer/image-small", {"model.image=230"},
          "expected a multiple of the patch 16, got 230");
  refused("ringformer/image-small", {"model.heads=7"},
          "expected a divisor of the width 512, got 7");
  refused("sret/t", {"model.image=200"}, "625 tokens cannot be cut into 8 equal groups");
  refused("sret/t", {"model.depth.recursive.groups=[[3]]"}, "784 tokens cannot be cut into 3");
  refused("sret/t", {"model.depth.scheme=ring"}, "is not supported in a pyramid");
  refused("sret/t", {"model.heads=[2,4]"}, "expected one entry per stage");
  refused("brt/rec-fixed-skip", {"model.time.recurrent_layers=[13]"},
          "recurrent_layers: expected a layer from 1 to 12, got 13");
  refused("brt/rec-fixed-skip", {"model.time.recurrent_layers=[]"}, "expected at least one");
  refused("brt/memorizing-32k", {"model.time.memory_layer=40"},
          "expected a layer from 1 to 12, got 40");
  refused("brt/slide-12l", {"model.time.segment=1000"},
          "expected a multiple of the window 512, got 1000");
  refused("brt/slide-12l", {"model.depth.recursive.groups=[[2]]"},
          "would let tokens see the future");
  refused("sret/mixer-b16", {"model.depth.scheme=ring"}, "is not supported with model.mixing");
  refused("ringformer/mt-base", {"model.padding=52000"}, "expected a token below 52000, got 52000");
  refused("ringformer/image-small", {"model.mixed_depth=true"},
          "is not supported with scheme 'ring'");
}

TEST(Config, SizesAreCheckedLikeAFile) {
  expect_refusal(rondo({"info", "ringformer/image-small", "--image", "230"}), ExitCode::bad_input,
                 "expected a multiple of the patch 16, got 230");
  expect_refusal(rondo({"info", "sret/t", "--image", "200"}), ExitCode::bad_input,
                 "625 tokens cannot be cut into 8 equal groups");
}

TEST(Config, UnknownModelsSuggestTheNearest) {
  expect_refusal(rondo({"info", "sret/tt"}), ExitCode::usage, "did you mean 'sret/t'?");
  expect_refusal(rondo({"info", "ringfomer/mt-base"}), ExitCode::usage,
                 "did you mean 'ringformer/mt-base'?");
  expect_refusal(rondo({"info", "rec-fixed-skip"}), ExitCode::usage,
                 "did you mean 'brt/rec-fixed-skip'?");
  expect_refusal(rondo({"info", "zzz"}), ExitCode::usage, "'rondo models' lists all names");
  expect_refusal(info_of("[model]\nbase = \"sret/tll\"\n"), ExitCode::usage,
                 "did you mean 'sret/tl'?");
}

TEST(Config, FilesThatAreNotThere) {
  expect_refusal(rondo({"info", "nowhere.toml"}), ExitCode::io, "nowhere.toml: cannot open");
  expect_refusal(rondo({"info", "nowhere.safetensors"}), ExitCode::io,
                 "nowhere.safetensors: cannot open");
}

}  // namespace
}  // namespace rondo::testing
