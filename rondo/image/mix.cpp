// Drawing and applying mixup and cutmix.
#include "rondo/image/mix.h"

#include <algorithm>
#include <cmath>

#include "rondo/base/require.h"

namespace rondo {
namespace {

// Marsaglia and Tsang's rejection sampling; shapes below 1 use a power of a uniform number.
double gamma_draw(double shape, CounterRandom& random) {
  if (shape < 1.0) {
    const double larger = gamma_draw(shape + 1.0, random);
    return larger * std::pow(1.0 - random.uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1.0 + c * x, 3);
    const double u = 1.0 - random.uniform();  // in (0, 1]
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

void draw_box(Mix& mix, int64_t side, CounterRandom& random) {
  const auto cut = static_cast<int64_t>(static_cast<double>(side) * std::sqrt(1.0 - mix.lambda));
  const auto y = static_cast<int64_t>(random.below(static_cast<uint64_t>(side)));
  const auto x = static_cast<int64_t>(random.below(static_cast<uint64_t>(side)));
  mix.top = std::clamp<int64_t>(y - cut / 2, 0, side);
  mix.bottom = std::clamp<int64_t>(y + cut / 2, 0, side);
  mix.left = std::clamp<int64_t>(x - cut / 2, 0, side);
  mix.right = std::clamp<int64_t>(x + cut / 2, 0, side);
  // The image borders may clip the box, so lambda is recomputed from the actual area.
  const auto box = static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left));
  mix.lambda = 1.0 - box / static_cast<double>(side * side);
}

}  // namespace

double beta_draw(double alpha, CounterRandom& random) {
  require(alpha > 0, "mixing: expected an alpha above 0, got {}", alpha);
  const double a = gamma_draw(alpha, random);
  const double b = gamma_draw(alpha, random);
  if (!(a + b > 0)) {  // tiny alpha: both underflow, and all mass is at the ends
    return random.below(2) == 0 ? 0.0 : 1.0;
  }
  return a / (a + b);
}

Mix draw_mix(const AugmentConfig& config, int64_t side, CounterRandom& random) {
  Mix mix;
  const bool both = config.mixup > 0 && config.cutmix > 0;
  if (!(config.mixup > 0 || config.cutmix > 0) || random.uniform() >= config.mixup_prob) {
    return mix;
  }
  mix.cut = both ? random.uniform() < config.mixup_switch : config.cutmix > 0;
  mix.lambda = beta_draw(mix.cut ? config.cutmix : config.mixup, random);
  mix.mixed = true;
  if (mix.cut) {
    draw_box(mix, side, random);
  }
  return mix;
}

void apply_mix(const Mix& mix, float* pixels, int64_t rows, int64_t side) {
  if (!mix.mixed) {
    return;
  }
  const int64_t image = 3 * side * side;
  for (int64_t row = 0; row < rows / 2; ++row) {
    float* one = pixels + row * image;
    float* two = pixels + (rows - 1 - row) * image;
    if (!mix.cut) {
      const auto own = static_cast<float>(mix.lambda);
      const auto other = static_cast<float>(1.0 - mix.lambda);
      for (int64_t i = 0; i < image; ++i) {
        const float a = one[i];
        const float b = two[i];
        one[i] = a * own + b * other;
        two[i] = b * own + a * other;
      }
      continue;
    }
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = mix.top; y < mix.bottom; ++y) {
        const int64_t begin = (c * side + y) * side;
        std::swap_ranges(one + begin + mix.left, one + begin + mix.right, two + begin + mix.left);
      }
    }
  }
}

std::vector<float> mixed_targets(const std::vector<int64_t>& labels, double lambda, int64_t classes,
                                 double smoothing) {
  const double off = smoothing / static_cast<double>(classes);
  const double on = 1.0 - smoothing;
  std::vector<float> targets(labels.size() * static_cast<size_t>(classes), static_cast<float>(off));
  for (size_t row = 0; row < labels.size(); ++row) {
    float* target = targets.data() + row * static_cast<size_t>(classes);
    target[labels[row]] += static_cast<float>(on * lambda);
    target[labels[labels.size() - 1 - row]] += static_cast<float>(on * (1.0 - lambda));
  }
  return targets;
}

}  // namespace rondo
