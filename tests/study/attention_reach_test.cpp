// Attention distance of whole networks, against loops over the probabilities.
#include "rondo/study/attention_reach.h"

#include <cmath>

#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

Everything observe(const TinyModel& m, const Batch& batch) {
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  return seen;
}

double patch_distance(int64_t a, int64_t b, int64_t side, double patch) {
  return patch * std::hypot(double(a / side - b / side), double(a % side - b % side));
}

TEST(AttentionReach, OfPatchesWithAClassToken) {
  const TinyModel m = tiny("ringformer/image-base");  // 16 pixels, patches of 4
  const Batch batch = tiny_batch(m.config, 3, 5);
  GivenBatches data({batch});
  const AttentionReach reach = attention_reach(*m.network, data, 16);
  const Everything seen = observe(m, batch);
  ASSERT_EQ(int64_t(reach.levels.size()), m.network->stacks().at("stack")->plan().size());
  for (size_t l = 0; l < reach.levels.size(); ++l) {
    const Tensor p = seen.one("stack.level." + std::to_string(l) + ".mixing.probabilities");
    const int64_t skip = p.size(2) - 16;
    for (int64_t h = 0; h < p.size(1); ++h) {
      double sum = 0;
      for (int64_t b = 0; b < 3; ++b) {
        for (int64_t q = 0; q < 16; ++q) {
          for (int64_t k = 0; k < 16; ++k) {
            sum += p[b][h][q + skip][k + skip].item<double>() * patch_distance(q, k, 4, 4);
          }
        }
      }
      EXPECT_NEAR(reach.levels[l].distance[h].item<double>(), sum / (3 * 16), 1e-5);
    }
    EXPECT_FALSE(reach.levels[l].state_share.defined());
  }
}

// Slices of a pyramid, and the order of a permutation.
TEST(AttentionReach, OfSlicedStages) {
  const TinyModel m = tiny("sret/t");
  const Batch batch = tiny_batch(m.config, 2, 5);
  const int64_t image = image_side(m.config);
  GivenBatches data({batch});
  const AttentionReach reach = attention_reach(*m.network, data, image);
  const Everything seen = observe(m, batch);
  size_t at = 0;
  bool permuted = false;
  for (const auto& [stack, levels] : m.network->stacks()) {
    for (int64_t l = 0; l < levels->plan().size(); ++l, ++at) {
      const std::string scope = stack + ".level." + std::to_string(l) + ".mixing.";
      const Tensor p = seen.one(scope + "probabilities");
      const int64_t each = p.size(2);
      const int64_t groups = p.size(0) / 2;
      const auto side = int64_t(std::lround(std::sqrt(double(groups * each))));
      const auto order = seen.all.find(scope + "permutation");
      permuted = permuted || order != seen.all.end();
      const auto place = [&](int64_t group, int64_t i) {
        const int64_t token = group * each + i;
        return order == seen.all.end() ? token : order->second[0][token].item<int64_t>();
      };
      double sum = 0;
      for (int64_t b = 0; b < p.size(0); ++b) {
        for (int64_t q = 0; q < each; ++q) {
          for (int64_t k = 0; k < each; ++k) {
            sum += p[b][0][q][k].item<double>() * patch_distance(place(b % groups, q),
                                                                 place(b % groups, k), side,
                                                                 double(image) / double(side));
          }
        }
      }
      EXPECT_NEAR(reach.levels[at].distance[0].item<double>(), sum / double(p.size(0) * each), 1e-4)
          << scope;
    }
  }
  EXPECT_TRUE(permuted);
}

TEST(AttentionReach, OfSentencesLeavesOutPadding) {
  const TinyModel m = tiny("ringformer/mt-base");
  const Batch batch = tiny_batch(m.config, 4, 5);
  GivenBatches data({batch});
  const AttentionReach reach = attention_reach(*m.network, data, 0);
  const Everything seen = observe(m, batch);
  for (const LevelReach& level : reach.levels) {
    const std::string scope = level.group + ".level." + std::to_string(std::stoi(level.label) - 1);
    const Tensor p = seen.one(scope + ".mixing.probabilities");
    double distance = 0, entropy = 0, queries = 0;
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t q = 0; q < p.size(2); ++q) {
        if (!batch.real.at(level.group)[b][q].item<bool>()) continue;
        ++queries;
        for (int64_t k = 0; k < p.size(3); ++k) {
          const double share = p[b][1][q][k].item<double>();
          distance += share * double(std::abs(q - k));
          if (share > 0) entropy -= share * std::log(share);
        }
      }
    }
    EXPECT_NEAR(level.distance[1].item<double>(), distance / queries, 1e-5) << scope;
    EXPECT_NEAR(level.entropy[1].item<double>(), entropy / queries, 1e-5) << scope;
  }
}

// Windows come as tiles of W queries and 2W keys; states have a softmax of their own.
TEST(AttentionReach, OfWindowsAndRecurrentStates) {
  const TinyModel m = tiny("brt/rec-fixed-skip");
  const auto& config = std::get<LanguageModelConfig>(m.config.network);
  const int64_t window = config.time.window;
  Batch batch = tiny_batch(m.config, 2, 5, 2 * window);
  batch.inputs["reset"] = at::ones({2}, at::kBool);
  GivenBatches data({batch});
  const AttentionReach reach = attention_reach(*m.network, data, 0);
  const Everything seen = observe(m, batch);
  bool shared = false;
  for (const LevelReach& level : reach.levels) {
    const std::string scope = "stack.level." + std::to_string(std::stoi(level.label) - 1);
    const Tensor p = seen.one(scope + ".mixing.probabilities");
    ASSERT_EQ(p.size(3), 2 * window);
    double distance = 0;
    for (int64_t b = 0; b < p.size(0); ++b) {
      for (int64_t q = 0; q < window; ++q) {
        for (int64_t k = 0; k < 2 * window; ++k) {
          distance += p[b][0][q][k].item<double>() * double(std::abs(window + q - k));
        }
      }
    }
    EXPECT_NEAR(level.distance[0].item<double>(), distance / double(p.size(0) * window), 1e-4);
    if (!level.state_share.defined()) continue;
    shared = true;
    const Tensor a = seen.one(scope + ".mixing.window_heads").norm(2, -1);
    const Tensor b = seen.one(scope + ".mixing.state_heads").norm(2, -1);
    expect_near(level.state_share, (b / (a + b)).mean(at::IntArrayRef{0, 2}).to(at::kDouble), 1e-5);
  }
  EXPECT_TRUE(shared);
}

// Two segments, so that the second finds the first in memory; row 1 ends in padding.
TEST(AttentionReach, OfAMemory) {
  const TinyModel m = tiny("brt/memorizing-32k");
  const auto& config = std::get<LanguageModelConfig>(m.config.network);
  const int64_t length = 2 * config.time.window;
  std::vector<Batch> data = {tiny_batch(m.config, 2, 5, length),
                             tiny_batch(m.config, 2, 6, length)};
  for (Batch& batch : data) {
    batch.inputs["reset"] = at::full({2}, &batch == &data[0], at::kBool);
    batch.real["stack"] = at::ones({2, length}, at::kBool);
    batch.real["stack"][1].slice(0, length - 3).fill_(false);
  }
  GivenBatches given(data);
  const AttentionReach reach = attention_reach(*m.network, given, 0);
  const at::NoGradGuard no_grad;
  const LevelReach& level = reach.levels.at(size_t(config.time.memory_layer - 1));
  const std::string scope =
      "stack.level." + std::to_string(config.time.memory_layer - 1) + ".mixing.memory";
  State state;
  double share = 0, distance = 0, recalled = 0, tokens = 0;
  for (const Batch& batch : data) {
    Everything seen;
    m.network->forward(batch.inputs, state, Scope(&seen));
    const double gate = seen.one(scope + "_gate").flatten()[1].item<double>();
    int64_t token = 0;
    tokens += double(2 * length - 3);
    for (size_t i = 0; i < seen.all.at(scope + ".probabilities").size(); ++i) {
      const Tensor p = seen.all.at(scope + ".probabilities")[i];
      const Tensor d = seen.all.at(scope + ".distances")[i];
      for (int64_t q = 0; q < p.size(2); ++q, ++token) {
        for (int64_t b = 0; b < 2; ++b) {
          if (b == 1 && token >= length - 3) continue;
          for (int64_t k = 0; k < p.size(3); ++k) {
            const double weight = p[b][1][q][k].item<double>();
            recalled += weight;
            share += gate * weight;
            distance += weight * d[b][1][q][k].item<double>();
          }
        }
      }
    }
  }
  EXPECT_GT(recalled, 0);
  EXPECT_LT(recalled, tokens);  // the first block finds nothing
  EXPECT_NEAR(level.memory_share[1].item<double>(), share / tokens, 1e-6);
  EXPECT_NEAR(level.memory_distance[1].item<double>(), distance / recalled, 1e-4);
  EXPECT_FALSE(reach.levels.front().memory_share.defined());
  const StudyReport report = reach_report({reach});
  EXPECT_NE(report.page.html().find("share of attention to memory"), std::string::npos);
}

TEST(AttentionReach, ReportsNothingToRead) {
  const TinyModel m = tiny("ringformer/mt-base");
  GivenBatches none({});
  expect_error(ExitCode::bad_input, "expected data", [&] { attention_reach(*m.network, none, 0); });
}

}  // namespace
}  // namespace rondo::test
