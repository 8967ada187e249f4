// From a stored image to network input: crop, augmentation, normalization.
//
// Training follows DeiT (timm): crop, flip, automatic augmentation, color jitter, normalization,
// erasing. Evaluation resizes the shorter side and takes the center crop.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rondo/base/random.h"
#include "rondo/config/augment_config.h"
#include "rondo/image/augment_policy.h"
#include "rondo/image/decode.h"
#include "rondo/image/image.h"
#include "rondo/image/resize.h"

namespace rondo {

struct Rectangle {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// torchvision's RandomResizedCrop: an area in [scale_min, 1] of the image's, an aspect ratio in
// [3/4, 4/3], log-uniform; the center crop after ten draws that do not fit.
Rectangle random_resized_crop(const ImageSize& size, double scale_min, CounterRandom& random);

// timm's RandomErasing in pixel mode, on one normalized image [3, side, side]: with this
// probability a rectangle of 1/50 to 1/3 of the area becomes Gaussian noise.
void random_erase(float* pixels, int64_t side, double probability, CounterRandom& random);

// Resizes the shorter side to floor(side / ratio), then takes the center side x side, as
// torchvision's Resize and CenterCrop. An image of that size is returned unchanged.
Image fit_middle(const Image& image, int64_t side, double ratio, Filter filter);

// Immutable; thread-safe.
class Augmenter {
 public:
  // `config` must have passed check_augment().
  Augmenter(const AugmentConfig& config, int64_t side);

  // Loads the image, at a size sufficient for the crop drawn, and augments it. The same draws of
  // `random` give the same image.
  using Load = std::function<Image(const EnoughSide&)>;
  Image train_image(const Load& load, CounterRandom& random) const;
  void train(const Load& load, CounterRandom& random, float* out) const;  // out: [3, side, side]

  Image evaluate_image(const Image& image) const;
  void evaluate(const Image& image, float* out) const;

  // (value / 255 - mean) / std per channel; and its inverse, rounded and clamped to bytes.
  void normalize(const Image& image, float* out) const;
  Image picture(const float* pixels) const;

  int64_t side() const { return side_; }

 private:
  Image crop(const Load& load, CounterRandom& random) const;

  AugmentConfig config_;
  int64_t side_;
  RandAugment rand_;
  std::vector<float> normalized_;  // [3, 256]
};

}  // namespace rondo
