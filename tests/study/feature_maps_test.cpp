// Feature maps and attention rollout, against loops.
#include "rondo/study/feature_maps.h"

#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

TEST(FeatureMaps, AreOutputsOfLevelsOnTheirGrid) {
  const TinyModel m = tiny("ringformer/image-base");  // a class token and 4 x 4 patches
  const Batch batch = tiny_batch(m.config, 2, 5);
  FeatureMapOptions options;
  options.levels = {"2"};
  options.channels = 3;
  const auto found = image_activations(*m.network, batch, options);
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  const Tensor x = seen.one("stack.level.1.output")[1].slice(0, 1);  // [16, D]
  ASSERT_EQ(found.size(), 2U);
  ASSERT_EQ(found[1].levels.size(), 1U);
  const LevelMaps& maps = found[1].levels[0];
  ASSERT_EQ(maps.channels.size(), 3U);
  for (int64_t p = 0; p < 16; ++p) {
    EXPECT_NEAR(maps.mean[p / 4][p % 4].item<double>(), x[p].mean().item<double>(), 1e-5);
    EXPECT_NEAR(maps.strongest[0][p / 4][p % 4].item<double>(),
                x[p][maps.channels[0]].item<double>(), 1e-6);
  }
  const Tensor strength = x.abs().mean(0);
  EXPECT_EQ(maps.channels[0], strength.argmax().item<int64_t>());
  expect_error(ExitCode::bad_input, "no level '99'", [&] {
    image_activations(*m.network, batch, FeatureMapOptions{{"99"}, 3});
  });
}

TEST(FeatureMaps, RolloutMultipliesWhatLevelsSee) {
  const TinyModel m = tiny("ringformer/image-base");
  const Batch batch = tiny_batch(m.config, 1, 5);
  const auto found = image_activations(*m.network, batch, {});
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  // What the class token sees: a row vector carried down from the last level to the first.
  const int64_t levels = m.network->stacks().at("stack")->plan().size();
  std::vector<double> row(17, 0.0);
  row[0] = 1;
  for (int64_t l = levels - 1; l >= 0; --l) {
    const Tensor p = seen.one("stack.level." + std::to_string(l) + ".mixing.probabilities")[0];
    std::vector<double> next(17, 0.0);
    for (int64_t i = 0; i < 17; ++i) {
      for (int64_t j = 0; j < 17; ++j) {
        const double a = p.select(1, i).select(1, j).mean().item<double>();
        next[size_t(j)] += row[size_t(i)] * (a + (i == j ? 1 : 0)) / 2;
      }
    }
    row = next;
  }
  ASSERT_EQ(found[0].rollouts.size(), 1U);
  for (int64_t k = 0; k < 16; ++k) {
    EXPECT_NEAR(found[0].rollouts[0].seen[k / 4][k % 4].item<double>(), row[size_t(k + 1)], 1e-6);
  }
}

TEST(FeatureMaps, AttentionOfSlicesIsPutBackInPlace) {
  const Tensor p = at::rand({2, 3, 2, 2}, at::kDouble);  // two groups of two tokens
  const Tensor order = at::tensor({2, 0, 3, 1}, at::kLong);
  const Tensor all = whole_attention(p, order);
  for (int64_t q = 0; q < 4; ++q) {
    for (int64_t k = 0; k < 4; ++k) {
      const double want = q / 2 == k / 2 ? p[q / 2].mean(0)[q % 2][k % 2].item<double>() : 0.0;
      const auto at_token = [&](int64_t place) { return order[place].item<int64_t>(); };
      EXPECT_NEAR(all[at_token(q)][at_token(k)].item<double>(), want, 1e-12);
    }
  }
}

TEST(FeatureMaps, OfPyramidsGiveOneRolloutAStage) {
  const TinyModel m = tiny("sret/t");
  const auto found = image_activations(*m.network, tiny_batch(m.config, 1, 5), {});
  ASSERT_EQ(found[0].rollouts.size(), 3U);
  for (const Rollout& r : found[0].rollouts) EXPECT_NEAR(r.seen.sum().item<double>(), 1.0, 1e-5);
  EXPECT_NE(found[0].levels[1].label.find("loop 2"), std::string::npos);
}

}  // namespace
}  // namespace rondo::test
