// Automatic augmentation with randomly drawn operations: timm's RandAugment "rand-mM-mstdS-inc1"
// (DeiT: m9, 0.5), and torchvision's TrivialAugmentWide and color jitter.
#pragma once

#include <cstdint>

#include "rondo/base/random.h"
#include "rondo/image/augment_geometry.h"
#include "rondo/image/image.h"

namespace rondo {

enum class Operation {
  auto_contrast,
  equalize,
  invert,
  rotate,  // argument: degrees, counter-clockwise
  posterize,
  solarize,
  solarize_add,
  color,
  contrast,
  brightness,
  sharpness,
  shear_x,
  shear_y,
  translate_x,  // argument: pixels the content moves left (up)
  translate_y,
  identity,
};

// timm's increasing list consists of the first 15, in this order.
constexpr int64_t kRandOperations = 15;

// The argument timm passes to an operation at `level` (0 to 10) on an image of this size;
// `negative` chooses the sign, if it has one.
double rand_argument(Operation operation, double level, bool negative, const ImageSize& size);

// torchvision's list for TrivialAugmentWide and magnitude number `bin` of 31; `negative` as above.
// 0 if the operation has no magnitude.
constexpr int64_t kTrivialOperations = 14;
constexpr int64_t kTrivialBins = 31;
Operation trivial_operation(int64_t index);
double trivial_argument(Operation operation, int64_t bin, bool negative);

void apply_operation(Image& image, Operation operation, double argument, Sampling sampling,
                     const Color& fill);

struct RandAugment {
  double magnitude = 9;
  double magnitude_std = 0.5;
  int64_t operations = 2;
  Color fill{};  // for pixels from outside the image
  Sampling sampling = Sampling::bicubic;
  bool random_sampling = false;  // bilinear or bicubic at random
};
void rand_augment(Image& image, const RandAugment& options, CounterRandom& random);

void trivial_augment(Image& image, CounterRandom& random);

// Brightness, contrast and saturation, in random order, each scaled by [1 - share, 1 + share].
void color_jitter(Image& image, double share, CounterRandom& random);

}  // namespace rondo
