// Pillow's fixed-point convolution resampling, arranged for auto-vectorization: the pass along rows
// processes eight rows at once, transposed into lanes.
#include "rondo/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rondo/base/require.h"

// The same loops compiled again for wider vectors, selected at run time.
#if defined(__x86_64__)
#define RONDO_WIDE_VECTORS 1
#else
#define RONDO_WIDE_VECTORS 0
#endif

namespace rondo {
namespace {

// 8 bits for the result and 2 for the overshoot of negative lobes leave these for the fraction.
constexpr int kFractionBits = 32 - 8 - 2;

struct PixelView {
  const uint8_t* pixels = nullptr;
  int64_t width = 0;
  int64_t height = 0;
  size_t stride = 0;  // bytes between rows
};

double bilinear_weight(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic convolution with a = -1/2.
double bicubic_weight(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  }
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
}

// The input range and weights of each output along one axis.
struct Taps {
  size_t stride = 0;             // weights stored per output
  std::vector<int64_t> first;    // [outputs]
  std::vector<int64_t> count;    // [outputs]
  std::vector<int32_t> weights;  // [outputs, stride], fixed point

  int64_t begin() const { return first.front(); }
  int64_t end() const { return first.back() + count.back(); }
};

int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kFractionBits);
  return static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

Taps make_taps(int64_t inputs, float from, float to, int64_t outputs, Filter filter) {
  const double scale = static_cast<double>(to - from) / static_cast<double>(outputs);
  const double spread = std::max(scale, 1.0);
  const double support = (filter == Filter::bicubic ? 2.0 : 1.0) * spread;
  const double inverse = 1.0 / spread;
  Taps taps;
  taps.stride = static_cast<size_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(static_cast<size_t>(outputs));
  taps.count.resize(static_cast<size_t>(outputs));
  taps.weights.assign(static_cast<size_t>(outputs) * taps.stride, 0);
  std::vector<double> weights(taps.stride);
  for (int64_t i = 0; i < outputs; ++i) {
    const double center = from + (static_cast<double>(i) + 0.5) * scale;
    const int64_t first =
        std::max<int64_t>(0, static_cast<int64_t>(std::trunc(center - support + 0.5)));
    const int64_t last = std::min(inputs, static_cast<int64_t>(std::trunc(center + support + 0.5)));
    double sum = 0.0;
    for (int64_t x = first; x < last; ++x) {
      const double at = (static_cast<double>(x) - center + 0.5) * inverse;
      const double weight = filter == Filter::bicubic ? bicubic_weight(at) : bilinear_weight(at);
      weights[static_cast<size_t>(x - first)] = weight;
      sum += weight;
    }
    const auto at = static_cast<size_t>(i);
    taps.first[at] = first;
    taps.count[at] = last - first;
    for (size_t k = 0; k < static_cast<size_t>(last - first); ++k) {
      taps.weights[at * taps.stride + k] = fixed_point(sum != 0.0 ? weights[k] / sum : weights[k]);
    }
  }
  return taps;
}

inline uint8_t rounded_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr size_t kRowsAtOnce = 8;
constexpr size_t kLanes = 3 * kRowsAtOnce;  // channels by rows

// One band of rows: `lanes` is [input column, channel, row], and so is the result.
__attribute__((always_inline)) inline void row_band(const uint8_t* lanes, const Taps& taps,
                                                    uint8_t* out) {
  for (size_t i = 0; i < taps.first.size(); ++i) {
    const uint8_t* from = lanes + static_cast<size_t>(taps.first[i]) * kLanes;
    const int32_t* weights = taps.weights.data() + i * taps.stride;
    int32_t sums[kLanes];
    for (int32_t& sum : sums) {
      sum = kHalf;
    }
    for (int64_t k = 0; k < taps.count[i]; ++k, from += kLanes) {
      const int32_t weight = weights[k];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += from[lane] * weight;
      }
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      out[i * kLanes + lane] = rounded_byte(sums[lane]);
    }
  }
}

// One output row from `count` rows, `stride` bytes apart. `sums` is scratch space for `bytes`.
__attribute__((always_inline)) inline void column_row(const uint8_t* from, size_t stride,
                                                      const int32_t* weights, int64_t count,
                                                      size_t bytes, int32_t* __restrict sums,
                                                      uint8_t* __restrict out) {
  for (size_t x = 0; x < bytes; ++x) {
    sums[x] = kHalf;
  }
  for (int64_t k = 0; k < count; ++k, from += stride) {
    const int32_t weight = weights[k];
    const uint8_t* __restrict row = from;
    for (size_t x = 0; x < bytes; ++x) {
      sums[x] += row[x] * weight;
    }
  }
  for (size_t x = 0; x < bytes; ++x) {
    out[x] = rounded_byte(sums[x]);
  }
}

void row_band_plain(const uint8_t* lanes, const Taps& taps, uint8_t* out) {
  row_band(lanes, taps, out);
}
void column_row_plain(const uint8_t* from, size_t stride, const int32_t* weights, int64_t count,
                      size_t bytes, int32_t* sums, uint8_t* out) {
  column_row(from, stride, weights, count, bytes, sums, out);
}

#if RONDO_WIDE_VECTORS
__attribute__((target("avx2"))) void row_band_wide(const uint8_t* lanes, const Taps& taps,
                                                   uint8_t* out) {
  row_band(lanes, taps, out);
}
__attribute__((target("avx2"))) void column_row_wide(const uint8_t* from, size_t stride,
                                                     const int32_t* weights, int64_t count,
                                                     size_t bytes, int32_t* sums, uint8_t* out) {
  column_row(from, stride, weights, count, bytes, sums, out);
}
bool wide_vectors() {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  return wide;
}
#else
constexpr auto row_band_wide = row_band_plain;
constexpr auto column_row_wide = column_row_plain;
bool wide_vectors() { return false; }
#endif

// Rows [first, last) of the view, resampled along the row.
Image along_rows(const PixelView& view, const Taps& taps, int64_t first, int64_t last) {
  const auto band = wide_vectors() ? &row_band_wide : &row_band_plain;
  const auto outputs = static_cast<int64_t>(taps.first.size());
  // Only columns used by some output are transposed; the others are not read.
  std::vector<uint8_t> lanes(static_cast<size_t>(view.width) * kLanes);
  std::vector<uint8_t> results(static_cast<size_t>(outputs) * kLanes);
  Image out(outputs, last - first);
  for (int64_t y = first; y < last; y += kRowsAtOnce) {
    const size_t rows = std::min<size_t>(kRowsAtOnce, static_cast<size_t>(last - y));
    for (size_t r = 0; r < rows; ++r) {
      const uint8_t* from = view.pixels + (static_cast<size_t>(y) + r) * view.stride;
      for (int64_t x = taps.begin(); x < taps.end(); ++x) {
        uint8_t* to = lanes.data() + static_cast<size_t>(x) * kLanes + r;
        to[0] = from[x * 3];
        to[kRowsAtOnce] = from[x * 3 + 1];
        to[2 * kRowsAtOnce] = from[x * 3 + 2];
      }
    }
    band(lanes.data(), taps, results.data());
    for (size_t r = 0; r < rows; ++r) {
      uint8_t* to = out.row(y - first + static_cast<int64_t>(r));
      const uint8_t* from = results.data() + r;
      for (int64_t x = 0; x < outputs; ++x, from += kLanes, to += 3) {
        to[0] = from[0];
        to[1] = from[kRowsAtOnce];
        to[2] = from[2 * kRowsAtOnce];
      }
    }
  }
  return out;
}

Image along_columns(const PixelView& view, const Taps& taps, int64_t first_row) {
  const auto one_row = wide_vectors() ? &column_row_wide : &column_row_plain;
  const auto bytes = static_cast<size_t>(view.width) * 3;
  std::vector<int32_t> sums(bytes);
  Image out(view.width, static_cast<int64_t>(taps.first.size()));
  for (size_t i = 0; i < taps.first.size(); ++i) {
    const uint8_t* from =
        view.pixels + static_cast<size_t>(taps.first[i] - first_row) * view.stride;
    one_row(from, view.stride, taps.weights.data() + i * taps.stride, taps.count[i], bytes,
            sums.data(), out.row(static_cast<int64_t>(i)));
  }
  return out;
}

Image copy_view(const PixelView& view) {
  Image out(view.width, view.height);
  for (int64_t y = 0; y < view.height; ++y) {
    std::memcpy(out.row(y), view.pixels + static_cast<size_t>(y) * view.stride,
                static_cast<size_t>(view.width) * 3);
  }
  return out;
}

PixelView view_of(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height) {
  require(left >= 0 && top >= 0 && width >= 1 && height >= 1 && left <= image.width - width &&
              top <= image.height - height,
          "image: expected a region within {} x {} pixels, got {} x {} at {}, {}", image.width,
          image.height, width, height, left, top);
  return {image.row(top) + left * 3, width, height, static_cast<size_t>(image.width) * 3};
}

Image resample(const PixelView& view, int64_t width, int64_t height, Filter filter,
               const Box& box) {
  require(width >= 1 && height >= 1, "resizing: expected at least 1 x 1 pixels, got {} x {}", width,
          height);
  require(box.left >= 0 && box.top >= 0 && box.right > box.left && box.bottom > box.top &&
              box.right <= static_cast<float>(view.width) &&
              box.bottom <= static_cast<float>(view.height),
          "resizing: expected a box within {} x {} pixels, got [{}, {}) x [{}, {})", view.width,
          view.height, box.left, box.right, box.top, box.bottom);
  const bool rows = width != view.width || box.left != 0 || box.right != static_cast<float>(width);
  const bool columns =
      height != view.height || box.top != 0 || box.bottom != static_cast<float>(height);
  if (!rows && !columns) {
    return copy_view(view);
  }
  const Taps down = make_taps(view.height, box.top, box.bottom, height, filter);
  if (!rows) {
    return along_columns(view, down, 0);
  }
  const Taps across = make_taps(view.width, box.left, box.right, width, filter);
  if (!columns) {
    return along_rows(view, across, 0, view.height);
  }
  const Image half = along_rows(view, across, down.begin(), down.end());
  return along_columns(view_of(half, 0, 0, half.width, half.height), down, down.begin());
}

}  // namespace

Image resize(const Image& image, int64_t width, int64_t height, Filter filter, const Box& box) {
  return resample(view_of(image, 0, 0, image.width, image.height), width, height, filter, box);
}

Image resize(const Image& image, int64_t width, int64_t height, Filter filter) {
  return resize(image, width, height, filter,
                {0, 0, static_cast<float>(image.width), static_cast<float>(image.height)});
}

Image crop(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height) {
  return copy_view(view_of(image, left, top, width, height));
}

Image resize_crop(const Image& image, int64_t left, int64_t top, int64_t crop_width,
                  int64_t crop_height, int64_t width, int64_t height, Filter filter) {
  const Box box{0, 0, static_cast<float>(crop_width), static_cast<float>(crop_height)};
  return resample(view_of(image, left, top, crop_width, crop_height), width, height, filter, box);
}

}  // namespace rondo
