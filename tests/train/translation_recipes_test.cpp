// The experiments of configs/translation: every file can be read and its network built, every
// translation model of the zoo has a full and a mini one, and the full ones are the papers'.
#include <set>

#include "tests/support/shrink.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

const std::string kFolder = std::string(RONDO_SOURCE_DIR) + "/configs/translation";

std::vector<std::string> translation_recipes() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ConfigTable recipe_table(const std::string& name) {
  return ConfigTable::from_file(kFolder + "/" + name + ".toml");
}

bool is_mini(const std::string& name) {
  return name.size() > 5 && name.compare(name.size() - 5, 5, "-mini") == 0;
}

const EncoderDecoderConfig& network_of(const RunConfig& config) {
  return std::get<EncoderDecoderConfig>(config.model.network);
}

class TranslationRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(TranslationRecipe, IsAnExperimentThatCanBeRun) {
  const RunConfig config = read_run_config(recipe_table(GetParam()));
  ASSERT_STREQ(config.model.task(), "translation");
  EXPECT_EQ(network_of(config).padding, 0) << "what tokenizers learned by rondo pad with";
  const nn::ShapesOnly shapes;
  int64_t parameters = 0;
  for (const auto& item : build_network(config.model)->named_parameters()) {
    parameters += item.value().numel();
  }
  if (is_mini(GetParam())) {
    EXPECT_LT(parameters, 20'000'000) << "trains on two cores";
    EXPECT_LE(config.pairs.batch_tokens, 4096);
  } else {
    EXPECT_GT(parameters, 20'000'000);
  }
  const std::string text = dump_run_config(config);
  EXPECT_EQ(dump_run_config(read_run_config(ConfigTable::from_string(text, "dump"))), text);
}

// Beside a name of the zoo a full recipe says nothing of the model but its padding.
TEST_P(TranslationRecipe, FullOnesAreTheNamedModels) {
  if (is_mini(GetParam())) return;
  const ConfigTable table = recipe_table(GetParam());
  const std::string base = table.get_string("model.base").value_or("");
  ModelConfig named = find_model(base).config();
  std::get<EncoderDecoderConfig>(named.network).padding = 0;
  EXPECT_EQ(dump_model_config(read_run_config(table).model), dump_model_config(named));
}

INSTANTIATE_TEST_SUITE_P(Configs, TranslationRecipe, ::testing::ValuesIn(translation_recipes()),
                         NameOfModel());

TEST(TranslationRecipes, EveryNamedModelHasAFullAndAMiniOne) {
  std::set<std::string> full;
  std::set<std::string> mini;
  for (const std::string& name : translation_recipes()) {
    (is_mini(name) ? mini : full).insert(recipe_table(name).get_string("model.base").value_or(""));
  }
  const std::vector<std::string> models = zoo_names("translation");
  EXPECT_EQ(full, std::set<std::string>(models.begin(), models.end()));
  EXPECT_EQ(mini, full);
}

TEST(TranslationRecipes, MinisToCompareHaveTheSameWidthAndBudget) {
  const RunConfig ring = read_run_config(recipe_table("ringformer-mini"));
  for (const char* rival : {"universal-mini", "vanilla-mini", "one-wide-mini"}) {
    const RunConfig other = read_run_config(recipe_table(rival));
    EXPECT_EQ(network_of(other).width, network_of(ring).width) << rival;
    EXPECT_EQ(network_of(other).hidden, network_of(ring).hidden) << rival;
    EXPECT_EQ(network_of(other).depth.levels, network_of(ring).depth.levels) << rival;
    EXPECT_EQ(dump_config(other.train), dump_config(ring.train)) << rival;
    EXPECT_EQ(dump_config(other.schedule), dump_config(ring.schedule)) << rival;
  }
}

}  // namespace
}  // namespace rondo::test
