// Mixup and cutmix as in timm's batch mode: row r is mixed with row rows - 1 - r, with one lambda
// for the whole batch.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/base/random.h"
#include "rondo/config/augment_config.h"

namespace rondo {

struct Mix {
  bool mixed = false;
  bool cut = false;     // cutmix: the box comes from the mirrored row; otherwise a weighted sum
  double lambda = 1.0;  // the fraction of a row that is its own
  int64_t top = 0;      // cutmix's box, ends exclusive
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
};

// A Beta(alpha, alpha) sample, alpha > 0.
double beta_draw(double alpha, CounterRandom& random);

// Draws how to mix a batch of images of this side.
Mix draw_mix(const AugmentConfig& config, int64_t side, CounterRandom& random);

// pixels: [rows, 3, side, side]
void apply_mix(const Mix& mix, float* pixels, int64_t rows, int64_t side);

// The target distributions, [labels, classes]: each row sums to 1. `smoothing` is spread evenly
// over all classes, including the correct one.
std::vector<float> mixed_targets(const std::vector<int64_t>& labels, double lambda, int64_t classes,
                                 double smoothing);

}  // namespace rondo
