// ConfigTable::merge, recipes that inherit, and the order of layers.
#include <gtest/gtest.h>

#include "rondo/base/files.h"
#include "rondo/config/recipes.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

ConfigTable table(const char* text, const char* name) {
  return ConfigTable::from_string(text, name);
}

TEST(Layers, MergeJoinsTablesAndReplacesTheRest) {
  ConfigTable below = table("[a]\nx = 1\ny = [1, 2]\n[a.b]\nz = \"old\"\n", "below.toml");
  below.merge(table("[a]\ny = [3]\n[a.b]\nw = 4\n", "above.toml"));
  EXPECT_EQ(below.get_number("a.x"), 1);
  EXPECT_EQ(below.get_string("a.b.z"), "old");
  EXPECT_EQ(below.get_number("a.b.w"), 4);
  EXPECT_EQ(below.source_of("a.x"), "below.toml:2");
  EXPECT_EQ(below.source_of("a.y"), "above.toml:2");
  EXPECT_EQ(below.source_of("a.b.w"), "above.toml:4");
  EXPECT_EQ(below.source_of("a.b.nothing"), "");
}

TEST(Layers, AValueReplacesATableAndBack) {
  ConfigTable below = table("[a.b]\nx = 1\n", "below.toml");
  below.merge(table("[a]\nb = 2\n", "above.toml"));
  EXPECT_EQ(below.get_number("a.b"), 2);
  below.merge(table("[a.b]\ny = 3\n", "top.toml"));
  EXPECT_EQ(below.get_number("a.b.y"), 3);
  EXPECT_EQ(below.source_of("a.b.y"), "top.toml:2");
}

TEST(Layers, ErrorsNameTheFileOfTheLayer) {
  ConfigTable below = table("[train]\nsteps = 10\n", "below.toml");
  below.merge(table("\n\n[train]\nsteps = \"many\"\n", "above.toml"));
  TrainConfig config;
  try {
    read_config(below, "train", config);
    FAIL() << "accepted";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("above.toml:4: train.steps"), std::string::npos)
        << error.what();
  }
}

class Recipes : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file(folder_.path() + "/" + name, text);
    return folder_.path() + "/" + name;
  }
  testing::TempDir folder_;
};

constexpr const char* kBase = R"(
[model]
base = "brt/rec-fixed-skip"
[data]
train = "somewhere"
[train]
steps = 100
batch = 4
[schedule]
rate = 0.5
)";

TEST_F(Recipes, LaterLayersWin) {
  const std::string base = write("base.toml", kBase);
  write("mini.toml", "[model]\nwidth = 64\n[train]\nsteps = 30\n");
  const std::string recipe =
      write("recipe.toml", "extends = \"" + base + "\"\nmini = \"" + folder_.path() +
                               "/mini.toml\"\n[train]\nbatch = 8\n");
  Layers layers;
  layers.recipe = load_recipe(recipe);
  EXPECT_EQ(resolve_experiment(layers).config.train.steps, 100);  // extended
  EXPECT_EQ(resolve_experiment(layers).config.train.batch, 8);    // own
  layers.mini = true;
  EXPECT_EQ(resolve_experiment(layers).config.train.steps, 30);  // overlay
  layers.changes.push_back(table("[train]\nsteps = 20\n", "row.toml"));
  EXPECT_EQ(resolve_experiment(layers).config.train.steps, 20);  // row
  layers.set = {"train.steps=10"};
  const Experiment all = resolve_experiment(layers);
  EXPECT_EQ(all.config.train.steps, 10);  // --set
  EXPECT_EQ(std::get<LanguageModelConfig>(all.config.model.network).width, 64);
  const std::string explained = explain_experiment(all);
  EXPECT_NE(explained.find("# --set"), std::string::npos);
  EXPECT_NE(explained.find("# " + folder_.path() + "/mini.toml:2"), std::string::npos);
  EXPECT_NE(explained.find("# model brt/rec-fixed-skip"), std::string::npos);
  EXPECT_NE(explained.find("# default"), std::string::npos);
}

std::string refusal_of_recipe(const std::string& given) {
  try {
    Layers layers;
    layers.recipe = load_recipe(given);
    resolve_experiment(layers);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(Recipes, WhatIsWrongIsSaidWithItsPlace) {
  const std::string self = write("self.toml", "extends = \"" + folder_.path() + "/self.toml\"\n");
  EXPECT_NE(refusal_of_recipe(self).find("extends itself"), std::string::npos);
  EXPECT_NE(refusal_of_recipe("no-such-recipe").find("unknown recipe 'no-such-recipe'"),
            std::string::npos);
  const std::string key = write("key.toml", std::string("extend = \"x\"\n") + kBase);
  EXPECT_NE(refusal_of_recipe(key).find("key.toml:1: extend: unknown key"), std::string::npos)
      << refusal_of_recipe(key);
  const std::string needs = write("needs.toml", std::string("needs = [\"train.start\"]\n") + kBase);
  EXPECT_NE(refusal_of_recipe(needs).find("needs train.start"), std::string::npos);
  const std::string data =
      write("data.toml", "dataset = \"multi30k\"\n[model]\nbase = \"ringformer/mt-base\"\n");
  EXPECT_NE(refusal_of_recipe(data).find("--data multi30k=DIR"), std::string::npos)
      << refusal_of_recipe(data);
}

}  // namespace
}  // namespace rondo
