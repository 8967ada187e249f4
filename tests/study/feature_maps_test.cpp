// Feature maps and attention rollout, against loops.
#include "rondo/study/feature_maps.h"

#include <array>
#include <cmath>
#include <map>

#include "rondo/base/error.h"
#include "rondo/study/rollout.h"
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

// How much of one patch of the first stage reaches a token, followed from the token down, path by
// path: a level halves what stays, the rest goes to the group's tokens by attention.
struct PathFollower {
  const Everything& seen;
  std::vector<int64_t> levels;  // of every stage
  bool class_token;

  // `mass` of every token of `stage` after its last level, followed to before its first.
  std::vector<double> through_stage(int64_t stage, std::vector<double> mass) const {
    const size_t tokens = mass.size();
    for (int64_t l = levels[size_t(stage)] - 1; l >= 0; --l) {
      const std::string scope =
          "stage." + std::to_string(stage) + ".level." + std::to_string(l) + ".mixing.";
      const Tensor p = seen.one(scope + "probabilities");  // [G, H, n, n]
      const auto order = seen.all.find(scope + "permutation");
      const int64_t each = p.size(2);
      const auto token_at = [&](int64_t place) {
        return size_t(order == seen.all.end() ? place : order->second[0][place].item<int64_t>());
      };
      std::vector<double> before(tokens, 0.0);
      for (int64_t q = 0; q < int64_t(tokens); ++q) {
        before[token_at(q)] += mass[token_at(q)] / 2;
        for (int64_t k = q / each * each; k < (q / each + 1) * each; ++k) {
          double share = 0;
          for (int64_t h = 0; h < p.size(1); ++h) {
            share += p[q / each][h][q % each][k % each].item<double>() / double(p.size(1));
          }
          before[token_at(k)] += mass[token_at(q)] / 2 * share;
        }
      }
      mass = before;
    }
    return mass;
  }

  // From the tokens after a pooling to those before it, a grid of `side` x `side`.
  std::vector<double> through_pool(const std::vector<double>& mass, int64_t side) const {
    const int64_t skip = class_token ? 1 : 0;
    const int64_t small = int64_t(std::lround(std::sqrt(double(mass.size() - size_t(skip)))));
    std::vector<double> before(size_t(side * side + skip), 0.0);
    if (class_token) before[0] = mass[0];
    for (int64_t y = 0; y < small; ++y) {
      for (int64_t x = 0; x < small; ++x) {
        std::map<int64_t, double> read;  // patch → weight: nearer ones count twice along an axis
        double all = 0;
        for (int64_t v = 2 * y - 1; v <= 2 * y + 1; ++v) {
          for (int64_t u = 2 * x - 1; u <= 2 * x + 1; ++u) {
            if (v < 0 || v >= side || u < 0 || u >= side) continue;
            all += read[v * side + u + skip] = (v == 2 * y ? 2.0 : 1.0) * (u == 2 * x ? 2.0 : 1.0);
          }
        }
        for (const auto& [patch, weight] : read) {
          before[size_t(patch)] += mass[size_t(y * small + x + skip)] * weight / all;
        }
      }
    }
    return before;
  }
};

void expect_rollout_of_stages(const std::string& name) {
  const TinyModel m = tiny(name);
  const Batch batch = tiny_batch(m.config, 1, 5);
  const auto found = image_activations(*m.network, batch, {});
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  PathFollower paths = {seen, {}, std::get<PyramidConfig>(m.config.network).class_token};
  const int64_t skip = paths.class_token ? 1 : 0;
  std::vector<int64_t> sides;
  for (const auto& [stage, stack] : m.network->stacks()) {
    paths.levels.push_back(stack->plan().size());
    sides.push_back(seen.one(stage + ".map").size(2));
  }
  const auto start = [&](size_t stage) {
    std::vector<double> mass(size_t(sides[stage] * sides[stage] + skip), 0.0);
    for (double& x : mass) x = paths.class_token ? 0.0 : 1.0 / double(mass.size());
    if (paths.class_token) mass[0] = 1;
    return mass;
  };
  const auto expect_map = [&](const Rollout& got, const std::vector<double>& want, int64_t side) {
    for (int64_t i = 0; i < side * side; ++i) {
      EXPECT_NEAR(got.seen[i / side][i % side].item<double>(), want[size_t(i + skip)], 1e-6)
          << name << ", " << got.label;
    }
  };
  ASSERT_EQ(found[0].rollouts.size(), sides.size() + 1);
  for (size_t s = 0; s < sides.size(); ++s) {
    expect_map(found[0].rollouts[s], paths.through_stage(int64_t(s), start(s)), sides[s]);
  }
  std::vector<double> mass =
      paths.through_stage(int64_t(sides.size()) - 1, start(sides.size() - 1));
  for (size_t s = sides.size() - 1; s-- > 0;) {
    mass = paths.through_stage(int64_t(s), paths.through_pool(mass, sides[s]));
  }
  EXPECT_EQ(found[0].rollouts.back().label, "all stages");
  expect_map(found[0].rollouts.back(), mass, sides[0]);
}

TEST(FeatureMaps, RolloutGoesThroughSlicesLoopsAndPooling) {
  expect_rollout_of_stages("sret/t");      // slices, permutations, loops
  expect_rollout_of_stages("sret/pit-t");  // a class token, an odd side
}

// Only the first row and column, next to the padding, get more than the others.
TEST(FeatureMaps, PoolingFavorsNoPatch) {
  const Tensor fine = unpool(rollout_start(16, false), 7, false).view({7, 7});
  const Tensor inner = fine.slice(0, 2, 5).slice(1, 2, 5);
  expect_near(inner, at::full_like(inner, inner[0][0].item<double>()), 1e-12);
  EXPECT_NEAR(fine.sum().item<double>(), 1.0, 1e-12);
  EXPECT_THROW(unpool(rollout_start(16, false), 9, false), Error);
}

TEST(FeatureMaps, OfPyramidsNameBlocksAndLoops) {
  const TinyModel m = tiny("sret/t");
  const auto found = image_activations(*m.network, tiny_batch(m.config, 1, 5), {});
  for (const Rollout& r : found[0].rollouts) EXPECT_NEAR(r.seen.sum().item<double>(), 1.0, 1e-5);
  EXPECT_NE(found[0].levels[1].label.find("loop 2"), std::string::npos);
}

TEST(FeatureMaps, RolloutTintsThePicture) {
  Image picture(2, 1);
  const std::array<uint8_t, 6> pixels = {0, 0, 0, 30, 60, 210};
  std::copy(pixels.begin(), pixels.end(), picture.row(0));
  const Image tint = tinted(picture, at::tensor({0.25, 0.75}, at::kDouble).view({1, 2}));
  ASSERT_EQ(tint.width, 2);
  for (size_t c = 0; c < 3; ++c) {  // the map's full range, over gray
    EXPECT_NEAR(tint.row(0)[c], 0.55 * svg::map_rgb(0)[c], 1.0);
    EXPECT_NEAR(tint.row(0)[3 + c], 0.45 * 100 + 0.55 * svg::map_rgb(1)[c], 1.0);
  }
  const Image flat = tinted(Image(8, 8), at::ones({2, 2}, at::kDouble));
  EXPECT_NEAR(flat.row(7)[21], 0.55 * svg::map_rgb(0.5)[0], 1.0);
}

}  // namespace
}  // namespace rondo::test
