// DeiT's sequence of transforms, and those that are neither geometry nor color.
#include "rondo/image/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rondo/base/require.h"
#include "rondo/image/augment_geometry.h"

namespace rondo {
namespace {

constexpr int64_t kPadding = 4;        // for crop = "pad"
constexpr int64_t kLongestShape = 16;  // aspect ratio limit; beyond, only the center is resized
constexpr int kCropTries = 10;
constexpr double kMinAspect = 3.0 / 4.0;
constexpr double kMaxAspect = 4.0 / 3.0;
constexpr double kEraseMinArea = 0.02;
constexpr double kEraseMaxArea = 1.0 / 3.0;
constexpr double kEraseMinAspect = 0.3;

double uniform_between(double low, double high, CounterRandom& random) {
  return low + (high - low) * random.uniform();
}

// Uniform in 0 .. last, inclusive.
int64_t draw_upto(int64_t last, CounterRandom& random) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(last) + 1));
}

int64_t round_even(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

Filter filter_named(const std::string& interpolation) {
  return interpolation == "bilinear" ? Filter::bilinear : Filter::bicubic;
}

// The rectangle in an image decoded at another size.
Rectangle rescaled(const Rectangle& at, const ImageSize& from, const Image& to) {
  const double x = static_cast<double>(to.width) / static_cast<double>(from.width);
  const double y = static_cast<double>(to.height) / static_cast<double>(from.height);
  const auto part = [](int64_t begin, int64_t length, double scale, int64_t limit) {
    const int64_t first =
        std::clamp<int64_t>(round_even(static_cast<double>(begin) * scale), 0, limit - 1);
    const int64_t last = round_even(static_cast<double>(begin + length) * scale);
    return std::pair(first, std::clamp<int64_t>(last, first + 1, limit) - first);
  };
  const auto [left, width] = part(at.left, at.width, x, to.width);
  const auto [top, height] = part(at.top, at.height, y, to.height);
  return {left, top, width, height};
}

// The shorter side at which the crop is still at least as large as the output.
int64_t enough_for(const Rectangle& part, const ImageSize& size, int64_t side) {
  const double scale =
      static_cast<double>(side) / static_cast<double>(std::min(part.width, part.height));
  if (scale >= 1.0) {
    return 0;
  }
  return static_cast<int64_t>(
      std::ceil(static_cast<double>(std::min(size.width, size.height)) * scale));
}

}  // namespace

Rectangle random_resized_crop(const ImageSize& size, double scale_min, CounterRandom& random) {
  const auto width = static_cast<double>(size.width);
  const auto height = static_cast<double>(size.height);
  for (int i = 0; i < kCropTries; ++i) {
    const double area = uniform_between(scale_min, 1.0, random) * (width * height);
    const double aspect =
        std::exp(uniform_between(std::log(kMinAspect), std::log(kMaxAspect), random));
    const int64_t w = round_even(std::sqrt(area * aspect));
    const int64_t h = round_even(std::sqrt(area / aspect));
    if (w >= 1 && h >= 1 && w <= size.width && h <= size.height) {
      const int64_t top = draw_upto(size.height - h, random);
      return {draw_upto(size.width - w, random), top, w, h};
    }
  }
  Rectangle middle{0, 0, size.width, size.height};
  if (width / height < kMinAspect) {
    middle.height = round_even(width / kMinAspect);
  } else if (width / height > kMaxAspect) {
    middle.width = round_even(height * kMaxAspect);
  }
  middle.width = std::clamp<int64_t>(middle.width, 1, size.width);
  middle.height = std::clamp<int64_t>(middle.height, 1, size.height);
  middle.left = (size.width - middle.width) / 2;
  middle.top = (size.height - middle.height) / 2;
  return middle;
}

void random_erase(float* pixels, int64_t side, double probability, CounterRandom& random) {
  if (probability <= 0 || random.uniform() > probability) {
    return;
  }
  const double log_aspect = std::log(kEraseMinAspect);
  const double area = static_cast<double>(side) * static_cast<double>(side);
  for (int i = 0; i < kCropTries; ++i) {
    const double target = uniform_between(kEraseMinArea, kEraseMaxArea, random) * area;
    const double aspect = std::exp(uniform_between(log_aspect, -log_aspect, random));
    const int64_t h = round_even(std::sqrt(target * aspect));
    const int64_t w = round_even(std::sqrt(target / aspect));
    if (w >= side || h >= side) {
      continue;
    }
    const int64_t top = draw_upto(side - h, random);
    const int64_t left = draw_upto(side - w, random);
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = top; y < top + h; ++y) {
        float* row = pixels + (c * side + y) * side + left;
        std::generate(row, row + w, [&] { return static_cast<float>(random.normal()); });
      }
    }
    return;
  }
}

Image fit_middle(const Image& image, int64_t side, double ratio, Filter filter) {
  // The epsilon is needed because 0.9 etc. are not binary fractions: 63 / 0.9 is 70.
  const auto target = static_cast<int64_t>(std::floor(static_cast<double>(side) / ratio + 1e-9));
  const int64_t shorter = std::min(image.width, image.height);
  const int64_t longer = std::max(image.width, image.height);
  if (shorter == side && longer == side && target == side) {
    return image;
  }
  const auto stretched = static_cast<int64_t>(
      static_cast<double>(target) * static_cast<double>(longer) / static_cast<double>(shorter));
  const bool wide = image.width > image.height;
  if (longer / shorter >= kLongestShape) {  // one pixel by ten thousand would become gigabytes
    const int64_t kept = shorter * (kLongestShape - 1);
    const int64_t begin = (longer - kept) / 2;
    const Image middle = wide ? rondo::crop(image, begin, 0, kept, shorter)
                              : rondo::crop(image, 0, begin, shorter, kept);
    return fit_middle(middle, side, ratio, filter);
  }
  const Image resized = resize(image, wide ? stretched : target, wide ? target : stretched, filter);
  const int64_t left = round_even(static_cast<double>(resized.width - side) / 2.0);
  const int64_t top = round_even(static_cast<double>(resized.height - side) / 2.0);
  return rondo::crop(resized, left, top, side, side);
}

Augmenter::Augmenter(const AugmentConfig& config, int64_t side)
    : config_(config), side_(side), normalized_(size_t{3} * 256) {
  require(side >= 1, "images: expected a side of at least 1 pixel, got {}", side);
  require(config.mean.size() == 3 && config.std.size() == 3,
          "augment: expected 3 means and 3 standard deviations, got {} and {}", config.mean.size(),
          config.std.size());
  rand_.magnitude = config.magnitude;
  rand_.magnitude_std = config.magnitude_std;
  rand_.operations = config.operations;
  rand_.random_sampling = config.interpolation == "random";
  rand_.sampling = config.interpolation == "bilinear" ? Sampling::bilinear : Sampling::bicubic;
  for (size_t c = 0; c < 3; ++c) {
    const double fill = std::min(255.0, std::nearbyint(255 * config.mean[c]));
    rand_.fill[c] = static_cast<uint8_t>(fill);
    const auto mean = static_cast<float>(config.mean[c]);
    const auto std = static_cast<float>(config.std[c]);
    for (size_t i = 0; i < 256; ++i) {
      normalized_[c * 256 + i] = (static_cast<float>(i) / 255.0F - mean) / std;
    }
  }
}

Image Augmenter::crop(const Load& load, CounterRandom& random) const {
  Filter filter = filter_named(config_.interpolation);
  if (config_.interpolation == "random") {
    filter = random.below(2) == 0 ? Filter::bilinear : Filter::bicubic;
  }
  if (config_.crop != "random-resized") {
    Image image = load([this](const ImageSize&) { return side_; });
    image = fit_middle(image, side_, 1.0, filter);
    if (config_.crop == "pad") {
      const int64_t top = draw_upto(2 * kPadding, random) - kPadding;
      const int64_t left = draw_upto(2 * kPadding, random) - kPadding;
      image = crop_padded(image, left, top, side_, side_, {0, 0, 0});
    }
    return image;
  }
  ImageSize size;
  Rectangle part;
  const Image image = load([&](const ImageSize& true_size) {
    size = true_size;
    part = random_resized_crop(size, config_.scale_min, random);
    return enough_for(part, size, side_);
  });
  if (image.width != size.width || image.height != size.height) {
    part = rescaled(part, size, image);
  }
  return resize_crop(image, part.left, part.top, part.width, part.height, side_, side_, filter);
}

Image Augmenter::train_image(const Load& load, CounterRandom& random) const {
  Image image = crop(load, random);
  if (random.uniform() < config_.flip) {
    mirror(image);
  }
  if (config_.auto_augment == "rand") {
    rand_augment(image, rand_, random);
  } else if (config_.auto_augment == "trivial") {
    trivial_augment(image, random);
  }
  if (config_.color_jitter > 0) {
    color_jitter(image, config_.color_jitter, random);
  }
  return image;
}

void Augmenter::train(const Load& load, CounterRandom& random, float* out) const {
  normalize(train_image(load, random), out);
  random_erase(out, side_, config_.erase, random);
}

Image Augmenter::evaluate_image(const Image& image) const {
  const double ratio = config_.crop == "random-resized" ? config_.crop_ratio : 1.0;
  return fit_middle(image, side_, ratio, filter_named(config_.interpolation));
}

void Augmenter::evaluate(const Image& image, float* out) const {
  normalize(evaluate_image(image), out);
}

void Augmenter::normalize(const Image& image, float* out) const {
  const size_t area = static_cast<size_t>(image.width * image.height);
  for (size_t c = 0; c < 3; ++c) {
    const float* table = normalized_.data() + c * 256;
    const uint8_t* from = image.pixels.data() + c;
    for (size_t i = 0; i < area; ++i, from += 3) {
      out[c * area + i] = table[*from];
    }
  }
}

Image Augmenter::picture(const float* pixels) const {
  Image image(side_, side_);
  const auto area = static_cast<size_t>(side_ * side_);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < area; ++i) {
      const double value = pixels[c * area + i] * config_.std[c] + config_.mean[c];
      image.pixels[i * 3 + c] =
          static_cast<uint8_t>(std::clamp(std::nearbyint(value * 255.0), 0.0, 255.0));
    }
  }
  return image;
}

}  // namespace rondo
