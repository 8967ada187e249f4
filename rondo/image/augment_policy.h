// Automatic augmentation: drawing operations at random. RandAugment as timm's
// "rand-mM-mstdS-inc1" has it (DeiT: m9, 0.5), TrivialAugmentWide as torchvision has it, and
// torchvision's color jitter.
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

// timm's increasing list holds the first 15, in this order.
constexpr int64_t kRandOperations = 15;

// What timm passes to an operation at `level` (0 to 10) on an image of this size; `negative`
// chooses the sign where there is one.
double rand_argument(Operation operation, double level, bool negative, const ImageSize& size);

// torchvision's list for TrivialAugmentWide and its magnitude number `bin` of 31; `negative` as
// above. 0 where the operation has none.
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
  Color fill{};  // what moves in from outside
  Sampling sampling = Sampling::bicubic;
  bool random_sampling = false;  // bilinear or bicubic, by chance
};
void rand_augment(Image& image, const RandAugment& options, CounterRandom& random);

void trivial_augment(Image& image, CounterRandom& random);

// Brightness, contrast and saturation, in random order, each by a factor in [1 - share, 1 + share].
void color_jitter(Image& image, double share, CounterRandom& random);

}  // namespace rondo
