// The operation lists of timm and torchvision, and the meaning of their magnitudes.
#include "rondo/image/augment_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "rondo/base/require.h"
#include "rondo/image/augment_color.h"

namespace rondo {
namespace {

constexpr double kLevels = 10.0;  // timm's magnitude scale
constexpr int kSolarizeAddBelow = 128;

constexpr Operation kTrivialList[kTrivialOperations] = {
    Operation::identity,      Operation::shear_x,   Operation::shear_y,    Operation::translate_x,
    Operation::translate_y,   Operation::rotate,    Operation::brightness, Operation::color,
    Operation::contrast,      Operation::sharpness, Operation::posterize,  Operation::solarize,
    Operation::auto_contrast, Operation::equalize,
};

// torch.linspace(from, to, 31)[bin], which is computed from the nearer end, in single precision.
double linspace_bin(float from, float to, int64_t bin) {
  const float step = (to - from) / static_cast<float>(kTrivialBins - 1);
  return bin < kTrivialBins / 2 ? from + step * static_cast<float>(bin)
                                : to - step * static_cast<float>(kTrivialBins - 1 - bin);
}

}  // namespace

double rand_argument(Operation operation, double level, bool negative, const ImageSize& size) {
  const double share = level / kLevels;
  const double sign = negative ? -1.0 : 1.0;
  switch (operation) {
    case Operation::rotate:
      return sign * (share * 30.0);
    case Operation::posterize:
      return 4 - std::trunc(share * 4);
    case Operation::solarize:
      return 256 - std::trunc(share * 256);
    case Operation::solarize_add:
      return std::trunc(share * 110);
    case Operation::color:
    case Operation::contrast:
    case Operation::brightness:
    case Operation::sharpness:
      return std::max(0.1, 1.0 + sign * (share * 0.9));
    case Operation::shear_x:
    case Operation::shear_y:
      return sign * (share * 0.3);
    case Operation::translate_x:
      return sign * (share * 0.45) * static_cast<double>(size.width);
    case Operation::translate_y:
      return sign * (share * 0.45) * static_cast<double>(size.height);
    default:
      return 0;
  }
}

Operation trivial_operation(int64_t index) {
  require(index >= 0 && index < kTrivialOperations,
          "augment: operation {} does not exist, there are {}", index, kTrivialOperations);
  return kTrivialList[index];
}

double trivial_argument(Operation operation, int64_t bin, bool negative) {
  const double sign = negative ? -1.0 : 1.0;
  switch (operation) {
    case Operation::shear_x:
    case Operation::shear_y:
      return std::tan(std::atan(sign * linspace_bin(0, 0.99F, bin)));  // torchvision: via degrees
    case Operation::translate_x:
    case Operation::translate_y:
      // Whole pixels; torchvision moves the content right (down) for positive values.
      return -sign * std::trunc(linspace_bin(0, 32, bin));
    case Operation::rotate:
      return sign * linspace_bin(0, 135, bin);
    case Operation::brightness:
    case Operation::color:
    case Operation::contrast:
    case Operation::sharpness:
      return 1.0 + sign * linspace_bin(0, 0.99F, bin);
    case Operation::posterize:
      return 8 - std::nearbyint(static_cast<double>(bin) / 5.0);
    case Operation::solarize:
      return linspace_bin(255, 0, bin);
    default:
      return 0;
  }
}

void apply_operation(Image& image, Operation operation, double argument, Sampling sampling,
                     const Color& fill) {
  switch (operation) {
    case Operation::auto_contrast:
      return auto_contrast(image);
    case Operation::equalize:
      return equalize(image);
    case Operation::invert:
      return invert(image);
    case Operation::rotate:
      image = rotate(image, argument, sampling, fill);
      return;
    case Operation::posterize:
      return posterize(image, static_cast<int>(argument));
    case Operation::solarize:
      return solarize(image, argument);
    case Operation::solarize_add:
      return solarize_add(image, static_cast<int>(argument), kSolarizeAddBelow);
    case Operation::color:
      return adjust_color(image, argument);
    case Operation::contrast:
      return adjust_contrast(image, argument);
    case Operation::brightness:
      return adjust_brightness(image, argument);
    case Operation::sharpness:
      return adjust_sharpness(image, argument);
    case Operation::shear_x:
      image = affine(image, {1, argument, 0, 0, 1, 0}, sampling, fill);
      return;
    case Operation::shear_y:
      image = affine(image, {1, 0, 0, argument, 1, 0}, sampling, fill);
      return;
    case Operation::translate_x:
      image = affine(image, {1, 0, argument, 0, 1, 0}, sampling, fill);
      return;
    case Operation::translate_y:
      image = affine(image, {1, 0, 0, 0, 1, argument}, sampling, fill);
      return;
    case Operation::identity:
      return;
  }
}

void rand_augment(Image& image, const RandAugment& options, CounterRandom& random) {
  for (int64_t i = 0; i < options.operations; ++i) {
    const auto operation = static_cast<Operation>(random.below(kRandOperations));
    if (random.uniform() > 0.5) {
      continue;
    }
    const double drawn = options.magnitude + options.magnitude_std * random.normal();
    const double level = std::clamp(drawn, 0.0, kLevels);
    const bool negative = random.uniform() > 0.5;
    Sampling sampling = options.sampling;
    if (options.random_sampling) {
      sampling = random.below(2) == 0 ? Sampling::bilinear : Sampling::bicubic;
    }
    const double argument = rand_argument(operation, level, negative, {image.width, image.height});
    apply_operation(image, operation, argument, sampling, options.fill);
  }
}

void trivial_augment(Image& image, CounterRandom& random) {
  const Operation operation = trivial_operation(
      static_cast<int64_t>(random.below(static_cast<uint64_t>(kTrivialOperations))));
  const auto bin = static_cast<int64_t>(random.below(static_cast<uint64_t>(kTrivialBins)));
  const bool negative = random.below(2) == 1;
  apply_operation(image, operation, trivial_argument(operation, bin, negative), Sampling::nearest,
                  {0, 0, 0});
}

void color_jitter(Image& image, double share, CounterRandom& random) {
  std::array<Operation, 3> order = {Operation::brightness, Operation::contrast, Operation::color};
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i)]);
  }
  for (const Operation operation : order) {
    const double low = std::max(0.0, 1.0 - share);
    const double factor = low + (1.0 + share - low) * random.uniform();
    apply_operation(image, operation, factor, Sampling::nearest, {});
  }
}

}  // namespace rondo
