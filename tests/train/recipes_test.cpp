// The experiments of configs/lm: every file is one that can be read and whose network can be built,
// every row of the paper's tables has a full and a mini one, and a mini one is what its parent is.
#include <set>

#include "tests/support/shrink.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  const std::string folder = std::string(RONDO_SOURCE_DIR) + "/configs/lm";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

RunConfig read_recipe(const std::string& name) {
  const std::string file = std::string(RONDO_SOURCE_DIR) + "/configs/lm/" + name + ".toml";
  return read_run_config(ConfigTable::from_file(file));
}

bool is_small(const std::string& name) {
  const bool mini = name.size() > 5 && name.compare(name.size() - 5, 5, "-mini") == 0;
  return mini || name == "demo";
}

class Recipe : public ::testing::TestWithParam<std::string> {};

TEST_P(Recipe, IsAnExperimentThatCanBeRun) {
  const RunConfig config = read_recipe(GetParam());
  EXPECT_STREQ(config.model.task(), "lm");
  const nn::ShapesOnly shapes;
  const auto network = build_network(config.model);
  int64_t parameters = 0;
  for (const auto& item : network->named_parameters()) parameters += item.value().numel();
  const int64_t tokens =
      config.train.batch * std::get<LanguageModelConfig>(config.model.network).time.segment;
  if (is_small(GetParam())) {
    EXPECT_LT(parameters, 20'000'000) << "trains on two cores";
    EXPECT_LE(tokens, 16384);
  } else {
    EXPECT_GT(parameters, 100'000'000);
    EXPECT_EQ(tokens * config.train.accumulate, 131072) << "the paper's tokens in a step";
  }
}

TEST_P(Recipe, ReadsBackFromWhatARunFolderKeeps) {
  const RunConfig config = read_recipe(GetParam());
  const std::string text = dump_run_config(config);
  EXPECT_EQ(dump_run_config(read_run_config(ConfigTable::from_string(text, "dump"))), text);
}

INSTANTIATE_TEST_SUITE_P(Configs, Recipe, ::testing::ValuesIn(recipe_names()),
                         [](const auto& given) { return test_name(given.param); });

TEST(Recipes, OfEveryRowOfTheTablesAreThereInBothSizes) {
  const std::vector<std::string> all = recipe_names();
  const std::set<std::string> names(all.begin(), all.end());
  for (const char* row :
       {"xl-512", "xl-1024", "xl-2048", "slide-12l", "slide-13l", "rec-fixed-skip",
        "rec-fixed-single", "rec-fixed-dual", "rec-lstm-skip", "rec-lstm-single", "rec-lstm-dual",
        "feedback-fixed-skip", "feedback-lstm-single", "memorizing-32k", "slide-13l-large",
        "rec-fixed-skip-large", "rec-lstm-single-large", "rec-fixed-skip-adjacent",
        "rec-fixed-skip-apart"}) {
    ASSERT_EQ(names.count(row), 1U) << row;
    ASSERT_EQ(names.count(row + std::string("-mini")), 1U) << row;
    const auto full = std::get<LanguageModelConfig>(read_recipe(row).model.network);
    const auto mini =
        std::get<LanguageModelConfig>(read_recipe(row + std::string("-mini")).model.network);
    EXPECT_EQ(full.time.kind, mini.time.kind) << row;
    EXPECT_EQ(full.time.recurrent_layers.size(), mini.time.recurrent_layers.size()) << row;
    if (!full.time.recurrent()) continue;
    EXPECT_EQ(full.time.gate, mini.time.gate) << row;
    EXPECT_EQ(full.time.configuration, mini.time.configuration) << row;
  }
}

TEST(Recipes, OfTheAblationsChangeOneThing) {
  const auto time = [](const std::string& name) {
    return std::get<LanguageModelConfig>(read_recipe(name).model.network).time;
  };
  const TimeConfig base = time("rec-fixed-skip-mini");
  EXPECT_EQ(time("rec-fixed-skip-window-half-mini").window * 2, base.window);
  EXPECT_EQ(time("rec-fixed-skip-window-double-mini").window, base.window * 2);
  EXPECT_EQ(time("rec-fixed-skip-states-half-mini").states * 2, base.states);
  EXPECT_EQ(time("rec-fixed-skip-states-double-mini").states, base.states * 2);
  EXPECT_EQ(time("rec-fixed-skip-gate-zero-mini").gate_init, "zero");
  EXPECT_EQ(time("rec-fixed-skip-gate-one-mini").gate_init, "one");
  EXPECT_EQ(base.gate_init, "normal");
}

}  // namespace
}  // namespace rondo::test
