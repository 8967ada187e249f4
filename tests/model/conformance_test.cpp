// Properties of every model of the zoo, each tested at a small size with its original structure.
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kRows = 3;

class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  ModelConfig config_ = shrink(find_model(GetParam()).config());
};

Shape expected_shape(const ModelConfig& config, const NamedTensors& inputs) {
  if (const auto* c = std::get_if<EncoderDecoderConfig>(&config.network)) {
    return {kRows, inputs.at("target").size(1), c->target_vocabulary};
  }
  if (const auto* c = std::get_if<LanguageModelConfig>(&config.network)) {
    return {kRows, inputs.at("tokens").size(1), c->vocabulary};
  }
  if (const auto* c = std::get_if<VisionConfig>(&config.network)) return {kRows, c->classes};
  return {kRows, std::get<PyramidConfig>(config.network).classes};
}

TEST_P(Conformance, LogitsHaveTheirShapeAreFiniteAndRepeat) {
  const at::NoGradGuard no_grad;
  const TinyModel m(config_);
  const NamedTensors in = tiny_inputs(config_, kRows, 2);
  const Tensor logits = m.logits(in);
  EXPECT_EQ(logits.sizes().vec(), expected_shape(config_, in));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
  EXPECT_GT(logits.std().item<double>(), 1e-6);
  expect_identical(m.logits(in), logits, "evaluation repeats");
}

TEST_P(Conformance, AGradientReachesEveryParameter) {
  const TinyModel m(config_);
  const Tensor logits = m.logits(tiny_inputs(config_, kRows, 3, 14));
  (logits * noise(logits.sizes().vec(), 4, at::kFloat)).sum().backward();
  for (const auto& item : m.network->named_parameters()) {
    const Tensor g = item.value().grad();
    ASSERT_TRUE(g.defined()) << item.key();
    EXPECT_TRUE(g.isfinite().all().item<bool>()) << item.key();
    // Softmax is invariant to a constant added to all scores: a key's bias has no effect.
    if (item.key().find("key.bias") != std::string::npos) continue;
    EXPECT_GT(g.abs().max().item<double>(), 0.0) << item.key();
  }
}

TEST_P(Conformance, RowsOfTheBatchDoNotKnowEachOther) {
  const at::NoGradGuard no_grad;
  const TinyModel m(config_);
  const NamedTensors in = tiny_inputs(config_, kRows, 5);
  const Tensor logits = m.logits(in);
  const Tensor order = at::tensor({2, 0, 1}, at::kLong);
  NamedTensors reordered;
  for (const auto& [name, tensor] : in) reordered[name] = tensor.index_select(0, order);
  expect_near(m.logits(reordered), logits.index_select(0, order), 1e-5);
}

TEST_P(Conformance, SavedAndLoadedItAnswersTheSame) {
  const at::NoGradGuard no_grad;
  const TinyModel m(config_);
  const NamedTensors in = tiny_inputs(config_, kRows, 6);
  const Tensor logits = m.logits(in);
  const TemporaryFile file(".safetensors");
  save_model(file.path(), config_, *m.network);
  const ResolvedModel resolved = resolve_model(file.path(), {});
  EXPECT_EQ(dump_model_config(resolved.config), dump_model_config(config_));
  TinyModel loaded(resolved.config, 99);
  EXPECT_NE(fingerprint(loaded.config, *loaded.network), fingerprint(config_, *m.network));
  load_weights(*loaded.network, SafetensorsFile::open(resolved.weights));
  EXPECT_EQ(fingerprint(loaded.config, *loaded.network), fingerprint(config_, *m.network));
  expect_identical(loaded.logits(in), logits);
}

TEST_P(Conformance, TheSameSeedGivesTheSameWeightsAndTraining) {
  const at::NoGradGuard no_grad;
  const TinyModel one(config_, 7), same(config_, 7), other(config_, 8);
  bool differs = false;
  const auto b = same.network->named_parameters();
  const auto c = other.network->named_parameters();
  for (const auto& item : one.network->named_parameters()) {
    expect_identical(item.value(), b[item.key()], item.key());
    differs = differs || !item.value().equal(c[item.key()]);
  }
  EXPECT_TRUE(differs);
  const NamedTensors in = tiny_inputs(config_, kRows, 9);
  one.network->train();
  same.network->train();
  at::manual_seed(11);
  const Tensor first = one.logits(in);
  at::manual_seed(11);
  expect_identical(same.logits(in), first, "training repeats");
}

INSTANTIATE_TEST_SUITE_P(Zoo, Conformance, ::testing::ValuesIn(zoo_names()), NameOfModel());

// Models whose training has any randomness.
std::vector<std::string> dropping_names() {
  std::vector<std::string> names;
  for (const std::string& name : zoo_names()) {
    const ModelConfig config = find_model(name).config();
    const bool drops = std::visit(
        [](const auto& c) {
          using C = std::decay_t<decltype(c)>;
          if constexpr (std::is_same_v<C, VisionConfig> || std::is_same_v<C, PyramidConfig>) {
            return c.dropout > 0 || c.drop_path > 0;
          } else {
            return c.dropout > 0;
          }
        },
        config.network);
    if (drops) names.push_back(name);
  }
  return names;
}

class DroppingConformance : public Conformance {};

TEST_P(DroppingConformance, TrainingFollowsTheGenerator) {
  const at::NoGradGuard no_grad;
  const TinyModel m(config_);
  const NamedTensors in = tiny_inputs(config_, kRows, 10);
  m.network->train();
  at::manual_seed(1);
  const Tensor first = m.logits(in);
  at::manual_seed(2);
  EXPECT_FALSE(m.logits(in).equal(first));
}

INSTANTIATE_TEST_SUITE_P(Zoo, DroppingConformance, ::testing::ValuesIn(dropping_names()),
                         NameOfModel());

}  // namespace
}  // namespace rondo::test
