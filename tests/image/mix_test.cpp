// Mixup and cutmix: their effect on pixels, and that targets remain distributions.
#include "rondo/image/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace rondo {
namespace {

constexpr int64_t kSide = 8;
constexpr int64_t kImage = 3 * kSide * kSide;

std::vector<float> numbered_pixels(int64_t rows) {
  std::vector<float> pixels(static_cast<size_t>(rows * kImage));
  std::iota(pixels.begin(), pixels.end(), 0.0F);
  return pixels;
}

AugmentConfig both() {
  AugmentConfig config;
  config.mixup = 0.8;
  config.cutmix = 1.0;
  return config;
}

TEST(Mix, PixelsAreWhatLambdaSays) {
  for (const int64_t rows : {1, 2, 5, 6}) {
    int cuts = 0;
    for (uint64_t step = 0; step < 60; ++step) {
      CounterRandom random(1, "mix", step);
      const Mix mix = draw_mix(both(), kSide, random);
      ASSERT_TRUE(mix.mixed);
      ASSERT_GE(mix.lambda, 0.0);
      ASSERT_LE(mix.lambda, 1.0);
      cuts += mix.cut ? 1 : 0;
      const std::vector<float> before = numbered_pixels(rows);
      std::vector<float> after = before;
      apply_mix(mix, after.data(), rows, kSide);
      for (int64_t row = 0; row < rows; ++row) {
        int64_t foreign = 0;
        for (int64_t i = 0; i < kImage; ++i) {
          const float own = before[static_cast<size_t>(row * kImage + i)];
          const float other = before[static_cast<size_t>((rows - 1 - row) * kImage + i)];
          const float got = after[static_cast<size_t>(row * kImage + i)];
          if (mix.cut) {
            const int64_t y = i / kSide % kSide;
            const int64_t x = i % kSide;
            const bool inside = y >= mix.top && y < mix.bottom && x >= mix.left && x < mix.right;
            ASSERT_EQ(got, inside ? other : own);
            foreign += inside ? 1 : 0;
          } else {
            const auto lambda = static_cast<float>(mix.lambda);
            ASSERT_NEAR(got, own * lambda + other * (1 - lambda), 1e-3);
          }
        }
        if (mix.cut) {
          ASSERT_NEAR(1.0 - mix.lambda, static_cast<double>(foreign) / kImage, 1e-12);
        }
      }
    }
    EXPECT_GT(cuts, 15);
    EXPECT_LT(cuts, 45);
  }
}

TEST(Mix, TargetsSumToOne) {
  const std::vector<int64_t> labels = {3, 0, 4, 4, 1};
  for (const double lambda : {0.0, 0.3, 1.0}) {
    for (const double smoothing : {0.0, 0.1}) {
      const std::vector<float> targets = mixed_targets(labels, lambda, 6, smoothing);
      ASSERT_EQ(targets.size(), 30U);
      for (size_t row = 0; row < 5; ++row) {
        double sum = 0;
        for (size_t c = 0; c < 6; ++c) {
          const double value = targets[row * 6 + c];
          sum += value;
          const double own = static_cast<int64_t>(c) == labels[row] ? lambda : 0.0;
          const double other = static_cast<int64_t>(c) == labels[4 - row] ? 1 - lambda : 0.0;
          EXPECT_NEAR(value, (own + other) * (1 - smoothing) + smoothing / 6, 1e-6);
        }
        EXPECT_NEAR(sum, 1.0, 1e-6);
      }
    }
  }
}

TEST(Mix, FollowsItsSettings) {
  AugmentConfig config;
  CounterRandom random(1, "mix");
  EXPECT_FALSE(draw_mix(config, kSide, random).mixed);
  EXPECT_EQ(random.index(), 0U);
  config = both();
  config.mixup_prob = 0.25;
  config.mixup_switch = 0.75;
  int mixed = 0;
  int cuts = 0;
  for (int i = 0; i < 4000; ++i) {
    const Mix mix = draw_mix(config, kSide, random);
    mixed += mix.mixed ? 1 : 0;
    cuts += mix.cut ? 1 : 0;
  }
  EXPECT_NEAR(mixed, 1000, 120);
  EXPECT_NEAR(cuts, 750, 120);
  config.cutmix = 0;
  config.mixup_prob = 1;
  EXPECT_FALSE(draw_mix(config, kSide, random).cut);
  config.cutmix = 1;
  config.mixup = 0;
  EXPECT_TRUE(draw_mix(config, kSide, random).cut);
}

// Mean 1/2 and variance 1 / (4 (2 alpha + 1)).
TEST(Mix, BetaHasItsMoments) {
  for (const double alpha : {0.01, 0.2, 0.8, 1.0, 4.0, 50.0}) {
    CounterRandom random(1, "beta");
    double sum = 0;
    double squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double value = beta_draw(alpha, random);
      ASSERT_GE(value, 0.0);
      ASSERT_LE(value, 1.0);
      sum += value;
      squares += (value - 0.5) * (value - 0.5);
    }
    const double variance = 0.25 / (2 * alpha + 1);
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
  CounterRandom random(1, "tiny");
  for (int i = 0; i < 100; ++i) {
    const double value = beta_draw(1e-6, random);
    EXPECT_TRUE(value >= 0.0 && value <= 1.0);
  }
}

}  // namespace
}  // namespace rondo
