// Lookup tables of 256 entries, and Pillow's blend of an image with a degenerate version of itself.
#include "rondo/image/augment_color.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace rondo {
namespace {

using ColorTable = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

template <class Value>
ColorTable table_of(Value value) {
  ColorTable table;
  for (int i = 0; i < 256; ++i) {
    table[static_cast<size_t>(i)] = static_cast<uint8_t>(value(i));
  }
  return table;
}

void apply_tables(Image& image, const std::array<ColorTable, 3>& tables) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) {
      image.pixels[i + c] = tables[c][image.pixels[i + c]];
    }
  }
}

void apply_table(Image& image, const ColorTable& table) {
  for (uint8_t& value : image.pixels) {
    value = table[value];
  }
}

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts{};
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) {
      ++counts[c][image.pixels[i + c]];
    }
  }
  return counts;
}

int identity_value(int i) { return i; }

ColorTable contrast_table(const Histogram& counts) {
  int low = 0;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) {
    ++low;
  }
  int high = 255;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) {
    --high;
  }
  if (high <= low) {
    return table_of(identity_value);
  }
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  return table_of([&](int i) { return std::clamp(static_cast<int>(i * scale + offset), 0, 255); });
}

ColorTable equal_table(const Histogram& counts) {
  int64_t total = 0;
  int64_t last = 0;
  int64_t used = 0;
  for (const int64_t count : counts) {
    total += count;
    last = count > 0 ? count : last;
    used += count > 0 ? 1 : 0;
  }
  const int64_t step = (total - last) / 255;
  if (used <= 1 || step == 0) {
    return table_of(identity_value);
  }
  int64_t sum = step / 2;
  return table_of([&](int i) {
    const int64_t value = sum / step;
    sum += counts[static_cast<size_t>(i)];
    return std::min<int64_t>(value, 255);
  });
}

int luma(const uint8_t* rgb) {
  return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;  // ITU-R 601-2
}

// `from` + factor (`to` - `from`), clamped to a byte, in the single precision of Pillow's blend.
uint8_t blended(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

// A 3 x 3 mean with center weight five; the border is unchanged.
Image smoothed(const Image& image) {
  Image out = image;
  if (image.width < 3 || image.height < 3) {
    return out;
  }
  const int64_t end = (image.width - 1) * 3;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t* above = image.row(y - 1);
    const uint8_t* here = image.row(y);
    const uint8_t* below = image.row(y + 1);
    uint8_t* to = out.row(y);
    for (int64_t x = 3; x < end; ++x) {
      const int sum = above[x - 3] + above[x] + above[x + 3] + here[x - 3] + 5 * here[x] +
                      here[x + 3] + below[x - 3] + below[x] + below[x + 3];
      // Rounded: an odd divisor never leaves exactly one half, so integers suffice.
      to[x] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  }
  return out;
}

}  // namespace

void auto_contrast(Image& image) {
  const std::array<Histogram, 3> counts = histograms(image);
  apply_tables(image,
               {contrast_table(counts[0]), contrast_table(counts[1]), contrast_table(counts[2])});
}

void equalize(Image& image) {
  const std::array<Histogram, 3> counts = histograms(image);
  apply_tables(image, {equal_table(counts[0]), equal_table(counts[1]), equal_table(counts[2])});
}

void invert(Image& image) {
  for (uint8_t& value : image.pixels) {
    value = static_cast<uint8_t>(255 - value);
  }
}

void posterize(Image& image, int bits) {
  const int mask = ~((1 << (8 - bits)) - 1);
  for (uint8_t& value : image.pixels) {
    value = static_cast<uint8_t>(value & mask);
  }
}

void solarize(Image& image, double threshold) {
  apply_table(image, table_of([&](int i) { return i < threshold ? i : 255 - i; }));
}

void solarize_add(Image& image, int add, int below) {
  apply_table(image, table_of([&](int i) { return i < below ? std::min(255, i + add) : i; }));
}

void adjust_color(Image& image, double factor) {
  const auto alpha = static_cast<float>(factor);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* rgb = image.pixels.data() + i;
    const int gray = luma(rgb);
    for (int c = 0; c < 3; ++c) {
      rgb[c] = blended(gray, rgb[c], alpha);
    }
  }
}

void adjust_contrast(Image& image, double factor) {
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    sum += luma(image.pixels.data() + i);
  }
  const auto count = static_cast<double>(image.width * image.height);
  const auto mean = static_cast<int>(std::floor(static_cast<double>(sum) / count + 0.5));
  const auto alpha = static_cast<float>(factor);
  apply_table(image, table_of([&](int i) { return blended(mean, i, alpha); }));
}

void adjust_brightness(Image& image, double factor) {
  const auto alpha = static_cast<float>(factor);
  apply_table(image, table_of([&](int i) { return blended(0, i, alpha); }));
}

void adjust_sharpness(Image& image, double factor) {
  const auto alpha = static_cast<float>(factor);
  const Image smooth = smoothed(image);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = blended(smooth.pixels[i], image.pixels[i], alpha);
  }
}

}  // namespace rondo
