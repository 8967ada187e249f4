// Mixup and cutmix as timm has them in its batch mode: every row is mixed with the row that mirrors
// it (row r with row rows - 1 - r), all by one number.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/base/random.h"
#include "rondo/config/augment_config.h"

namespace rondo {

struct Mix {
  bool mixed = false;
  bool cut = false;     // cutmix: the box comes from the mirrored row; else a weighted sum
  double lambda = 1.0;  // the share of a row that is its own
  int64_t top = 0;      // cutmix's box, the ends excluded
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
};

// One Beta(alpha, alpha) number, alpha > 0.
double beta_draw(double alpha, CounterRandom& random);

// What happens to a batch of images of this side.
Mix draw_mix(const AugmentConfig& config, int64_t side, CounterRandom& random);

// pixels: [rows, 3, side, side]
void apply_mix(const Mix& mix, float* pixels, int64_t rows, int64_t side);

// The distributions to learn, [labels, classes]: each row sums to 1. `smoothing` is spread evenly
// over all classes, the right one included.
std::vector<float> mixed_targets(const std::vector<int64_t>& labels, double lambda, int64_t classes,
                                 double smoothing);

}  // namespace rondo
