// The experiments of configs/image: every file can be read and its network built, every image model
// of the zoo has a full and a mini one, the full ones are the papers', and those to be compared
// are trained alike.
#include <set>

#include "rondo/train/image_model.h"
#include "tests/support/shrink.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

const std::string kImageRecipes = std::string(RONDO_SOURCE_DIR) + "/configs/image";

// Minis that are no row of a table: the first to try, and those with the stem of convolutions.
const std::set<std::string> kOnlyMini = {"sret-mini", "sret-mini-global", "sret-64-mini",
                                         "sret-64-mini-global", "ringformer-image-mini"};

// What rows without a name in the zoo change of the one they start from.
using Changes = std::map<std::string, std::vector<std::string>>;
const Changes& changes_of_rows() {
  const std::string recursive = "model.depth.recursive.";
  const std::string groups = recursive + "groups=";
  const std::string halves = groups + "[[8, 8], [4, 4], [1, 1]]";
  static const Changes changes = {
      {"sret-ext-no-loop", {recursive + "loops=[1]", recursive + "projection=2.0"}},
      {"deit-t-internal-no-nll", {recursive + "projection=0.0"}},
      {"sret-ladder-lrc-identity", {recursive + "residual=identity"}},
      {"sret-ladder-lrc-branch", {recursive + "residual=branch"}},
      {"sret-t-groups-8-8-4-4", {halves}},
      {"sret-t-groups-16-2-4-2", {groups + "[[16, 2], [4, 2], [1, 1]]"}},
      {"sret-tl-groups-8-8-4-4", {halves}},
      {"sret-tl-groups-8-8-4-4-p", {halves, recursive + "permutation=\"P\""}},
      {"sret-tl-groups-8-8-4-4-p-i", {halves, recursive + "permutation=\"P+I\""}},
      {"sret-tl-groups-8-4-4-2", {groups + "[[8, 4], [4, 2], [1, 1]]"}},
      {"sret-tl-groups-8-1-4-1", {groups + "[[8, 1], [4, 1], [1, 1]]"}},
      {"sret-tl-groups-16-1-14-1", {groups + "[[16, 1], [14, 1], [1, 1]]"}},
      {"sret-tl-groups-49-1-28-1", {groups + "[[49, 1], [28, 1], [1, 1]]"}},
      {"sret-t-384", {"model.image=384"}},
      {"sret-t-global-384", {"model.image=384"}},
      {"sret-tl-384", {"model.image=384"}},
      {"sret-tl-global-384", {"model.image=384"}},
      {"sret-s-384", {"model.image=384"}},
      {"sret-s-global-384", {"model.image=384"}},
      {"sret-s-global-512", {"model.image=512"}},
      {"sret-b-global-384", {"model.image=384"}},
  };
  return changes;
}

bool is_small_recipe(const std::string& name) { return name.find("-mini") != std::string::npos; }

std::vector<std::string> image_recipes() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kImageRecipes)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> full_image_recipes() {
  std::vector<std::string> names = image_recipes();
  names.erase(std::remove_if(names.begin(), names.end(), is_small_recipe), names.end());
  return names;
}

ConfigTable image_recipe_table(const std::string& name) {
  return ConfigTable::from_file(kImageRecipes + "/" + name + ".toml");
}

RunConfig image_recipe(const std::string& name) {
  return read_run_config(image_recipe_table(name));
}

std::string base_of_recipe(const std::string& name) {
  return image_recipe_table(name).get_string("model.base").value_or("");
}

bool name_has(const std::string& name, const char* part) {
  return name.find(part) != std::string::npos;
}

bool is_ring_recipe(const std::string& name) { return name_has(name, "ringformer"); }
bool is_fine_tuning(const std::string& name) {
  return name_has(name, "-384") || name_has(name, "-512");
}

int64_t parameters_of_recipe(const std::string& name) {
  const nn::ShapesOnly shapes;
  int64_t parameters = 0;
  for (const auto& item : build_network(image_recipe(name).model)->named_parameters()) {
    parameters += item.value().numel();
  }
  return parameters;
}

class ImageRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(ImageRecipe, IsAnExperimentThatCanBeRun) {
  const RunConfig config = image_recipe(GetParam());
  ASSERT_STREQ(config.model.task(), "image");
  EXPECT_GT(config.train.steps, config.schedule.warmup);
  EXPECT_LE(config.train.eval_every, config.train.steps);
  const int64_t parameters = parameters_of_recipe(GetParam());
  const int64_t images = config.train.batch * config.train.accumulate;
  if (is_small_recipe(GetParam())) {
    EXPECT_LT(parameters, 3'100'000) << "trains on two cores";
    EXPECT_LE(image_side(config.model), 64);
    EXPECT_EQ(image_classes(config.model), 10);
    EXPECT_EQ(images, 64);
  } else {
    EXPECT_GT(parameters, 3'000'000);
    EXPECT_GE(image_side(config.model), 224);
    EXPECT_EQ(image_classes(config.model), name_has(GetParam(), "ringformer-small") ? 100 : 1000);
    const int64_t of_ring = name_has(GetParam(), "ringformer-small") ? 1024 : 4096;
    EXPECT_EQ(images, is_ring_recipe(GetParam()) ? of_ring : 512) << "the paper's images in a step";
  }
  const std::string text = dump_run_config(config);
  EXPECT_EQ(dump_run_config(read_run_config(ConfigTable::from_string(text, "dump"))), text);
}

TEST_P(ImageRecipe, SaysWhatItTeachesAndWhereItBegins) {
  const std::string& name = GetParam();
  const RunConfig config = image_recipe(name);
  // Given on the command line; until then the words that training refuses.
  EXPECT_EQ(config.distill.teacher, name_has(name, "-distill") ? "TEACHER" : "");
  EXPECT_EQ(config.train.start, is_fine_tuning(name) ? "RUN" : "");
  EXPECT_EQ(config.distill.kind, name_has(name, "-distill-hard") ? "hard" : "soft");
  EXPECT_EQ(image_recipe_table(name).has("distill"), name_has(name, "-distill"));
  const bool decays = !is_ring_recipe(name) && !is_fine_tuning(name);
  EXPECT_EQ(config.optimizer.weight_decay, decays ? 0.05 : 0.0);
}

INSTANTIATE_TEST_SUITE_P(Configs, ImageRecipe, ::testing::ValuesIn(image_recipes()), NameOfModel());

class FullImageRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(FullImageRecipe, IsTheNamedModelOrARowBesideIt) {
  const auto changes = changes_of_rows().find(GetParam());
  const ResolvedModel row = resolve_model(
      base_of_recipe(GetParam()),
      changes == changes_of_rows().end() ? std::vector<std::string>() : changes->second);
  EXPECT_EQ(dump_model_config(image_recipe(GetParam()).model), dump_model_config(row.config));
}

// Sizes aside: blocks, levels, and groups, of which a mini has as many or one where its row has
// one.
void take_sizes(DepthConfig& mini, const DepthConfig& full) {
  mini.levels = full.levels;
  mini.recursive.blocks = full.recursive.blocks;
  ASSERT_EQ(mini.recursive.groups.size(), full.recursive.groups.size());
  for (size_t stage = 0; stage < mini.recursive.groups.size(); ++stage) {
    ASSERT_EQ(mini.recursive.groups[stage].size(), full.recursive.groups[stage].size());
    for (size_t loop = 0; loop < mini.recursive.groups[stage].size(); ++loop) {
      EXPECT_EQ(mini.recursive.groups[stage][loop] == 1, full.recursive.groups[stage][loop] == 1);
    }
  }
  mini.recursive.groups = full.recursive.groups;
}

void take_sizes(VisionConfig& mini, const VisionConfig& full) {
  take_sizes(mini.depth, full.depth);
  mini.image = full.image;
  mini.patch = full.patch;
  mini.classes = full.classes;
  mini.width = full.width;
  mini.hidden = full.hidden;
  mini.heads = full.heads;
  mini.token_hidden = full.token_hidden;
  mini.drop_path = full.drop_path;
}

void take_sizes(PyramidConfig& mini, const PyramidConfig& full) {
  take_sizes(mini.depth, full.depth);
  mini.image = full.image;
  mini.classes = full.classes;
  mini.stem = full.stem;
  mini.patch = full.patch;
  mini.stride = full.stride;
  mini.widths = full.widths;
  mini.heads = full.heads;
  mini.drop_path = full.drop_path;
}

TEST_P(FullImageRecipe, HasAMiniThatDiffersInSizeAlone) {
  const std::string mini_name = GetParam() + "-mini";
  EXPECT_EQ(base_of_recipe(mini_name), base_of_recipe(GetParam()));
  RunConfig mini = image_recipe(mini_name);
  const RunConfig full = image_recipe(GetParam());
  if (auto* vision = std::get_if<VisionConfig>(&mini.model.network)) {
    take_sizes(*vision, std::get<VisionConfig>(full.model.network));
  } else {
    take_sizes(std::get<PyramidConfig>(mini.model.network),
               std::get<PyramidConfig>(full.model.network));
  }
  EXPECT_EQ(dump_model_config(mini.model), dump_model_config(full.model));
  EXPECT_EQ(mini.optimizer.kind, full.optimizer.kind);
  EXPECT_EQ(mini.schedule.kind, full.schedule.kind);
}

INSTANTIATE_TEST_SUITE_P(Configs, FullImageRecipe, ::testing::ValuesIn(full_image_recipes()),
                         NameOfModel());

TEST(ImageRecipes, OfEveryMiniRunAndAreFinite) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : image_recipes()) {
    if (!is_small_recipe(name)) continue;
    const ModelConfig model = image_recipe(name).model;
    const std::shared_ptr<Network> network = build_network(model);
    nn::initialize(*network, 1);
    network->eval();
    State state;
    const NamedTensors inputs = tiny_inputs(model, 2, 3);
    const Tensor logits = network->forward(inputs, state, Scope()).at("logits");
    ASSERT_EQ(logits.sizes().vec(), (std::vector<int64_t>{2, 10})) << name;
    EXPECT_TRUE(at::isfinite(logits).all().item<bool>()) << name;
    EXPECT_GT(logits.std().item<double>(), 0.0) << name;
  }
}

TEST(ImageRecipes, OfEveryNamedModelAreThereInBothSizes) {
  std::set<std::string> full;
  std::set<std::string> mini;
  for (const std::string& name : image_recipes()) {
    (is_small_recipe(name) ? mini : full).insert(base_of_recipe(name));
  }
  const std::vector<std::string> models = zoo_names("image");
  EXPECT_EQ(full, std::set<std::string>(models.begin(), models.end()));
  EXPECT_EQ(mini, full);
}

TEST(ImageRecipes, OfMinisHaveAFullOneOrStandAlone) {
  const std::vector<std::string> all = image_recipes();
  const std::set<std::string> names(all.begin(), all.end());
  for (const std::string& name : all) {
    if (!is_small_recipe(name) || kOnlyMini.count(name) == 1) continue;
    const std::string full = name.substr(0, name.find("-mini"));
    EXPECT_EQ(full + "-mini", name);
    EXPECT_EQ(names.count(full), 1U) << name;
  }
  for (const std::string& name : kOnlyMini) EXPECT_EQ(names.count(name), 1U) << name;
  for (const auto& [name, changes] : changes_of_rows()) EXPECT_EQ(names.count(name), 1U) << name;
}

TEST(ImageRecipes, ToTryFirstAreThoseOfARow) {
  const auto dump = [](const char* name) { return dump_run_config(image_recipe(name)); };
  EXPECT_EQ(dump("ringformer-image-mini"), dump("ringformer-small-mini"));
}

// Which recipes are to be compared with each other.
std::string family_of_recipe(const std::string& name) {
  if (name == "sret-mini" || name == "sret-mini-global") return "first";
  if (is_small_recipe(name)) {
    if (is_fine_tuning(name)) return "mini, fine-tuning";
    return is_ring_recipe(name) ? "mini, ring" : "mini";
  }
  if (is_fine_tuning(name)) return "fine-tuning";
  if (name_has(name, "ringformer-small")) return "ring, small";
  if (name_has(name, "ringformer-base")) return "ring, base";
  return name_has(name, "-108") || name_has(name, "-1000") ? "deep" : "full";
}

// Memory aside: how a step's images are divided, and what is recomputed.
std::string training_of(RunConfig config) {
  config.train.batch *= config.train.accumulate;
  config.train.accumulate = 1;
  config.train.recompute_levels = 0;
  return dump_config(config.train) + dump_config(config.optimizer) + dump_config(config.schedule);
}

TEST(ImageRecipes, ToBeComparedAreTrainedAlike) {
  std::map<std::string, std::string> trainings;
  for (const std::string& name : image_recipes()) {
    const std::string training = training_of(image_recipe(name));
    const auto [known, is_new] = trainings.emplace(family_of_recipe(name), training);
    EXPECT_EQ(training, known->second) << name;
  }
  EXPECT_EQ(trainings.size(), 9U);
}

TEST(ImageRecipes, OfRingMinisScaledToARivalHaveItsParameters) {
  const std::map<std::string, std::vector<std::string>> rivals = {
      {"ringformer-small-owf-mini",
       {"ringformer-small-s-mini", "ringformer-small-uit-s-mini", "ringformer-small-vit-d-mini"}},
      {"ringformer-small-mini", {"ringformer-small-owf-d-mini"}},
      {"ringformer-base-owf-mini", {"ringformer-base-s-mini", "ringformer-base-uit-s-mini"}}};
  for (const auto& [rival, scaled] : rivals) {
    const auto wanted = static_cast<double>(parameters_of_recipe(rival));
    for (const std::string& name : scaled) {
      EXPECT_NEAR(static_cast<double>(parameters_of_recipe(name)), wanted, 0.02 * wanted) << name;
    }
  }
}

}  // namespace
}  // namespace rondo::test
