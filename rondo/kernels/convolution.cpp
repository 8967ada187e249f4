// Patch gathering and depthwise convolution.
#include "rondo/kernels/convolution.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "rondo/kernels/clones.h"

namespace rondo::kernels {
namespace {

// The taps [first, last) of a kernel starting at `start` that lie within `length` pixels.
struct Taps {
  Taps(int64_t start, int64_t kernel, int64_t length)
      : first(std::clamp<int64_t>(-start, 0, kernel)),
        last(std::clamp<int64_t>(length - start, first, kernel)) {}
  int64_t first, last;
};

void copy(const float* from, int64_t count, float* to) {
  if (count == 3) {  // a row of the usual kernel: cheaper than a call
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
  } else if (count > 0) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
}

// One row of a patch: `kernel` taps of `size` values, which are `step` apart in the image.
void gather_taps(const float* from, const Taps& taps, int64_t kernel, int64_t size, int64_t step,
                 float* to) {
  if (taps.first > 0) std::fill_n(to, taps.first * size, 0.0F);
  if (step == size) {
    copy(from + taps.first * size, (taps.last - taps.first) * size, to + taps.first * size);
  } else {
    for (int64_t i = taps.first; i < taps.last; ++i) copy(from + i * step, size, to + i * size);
  }
  if (taps.last < kernel) std::fill_n(to + taps.last * size, (kernel - taps.last) * size, 0.0F);
}

RONDO_CLONES
void add_products(const float* __restrict weight, const float* __restrict x, int64_t count,
                  float* __restrict sums) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sums[i] += weight[i] * x[i];
}

}  // namespace

void gather_patches(const ImageView& image, const ConvolutionShape& shape, int64_t first,
                    int64_t last, float* rows, int64_t stride) {
  const int64_t k = shape.kernel;
  const int64_t columns = shape.side(image.width);
  const int64_t planes = image.planar ? image.channels : 1;
  const int64_t size = image.planar ? 1 : image.channels;
  const int64_t step = image.planar ? 1 : image.column;
  for (int64_t pixel = first; pixel < last; ++pixel) {
    const int64_t y = pixel / columns * shape.stride - shape.padding;
    const int64_t x = pixel % columns * shape.stride - shape.padding;
    const Taps down(y, k, image.height);
    const Taps across(x, k, image.width);
    float* to = rows + (pixel - first) * stride;
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t i = 0; i < k; ++i, to += k * size) {
        if (i < down.first || i >= down.last) {
          std::fill_n(to, k * size, 0.0F);
          continue;
        }
        const int64_t at = ((p * image.height + y + i) * image.width + x) * step;
        gather_taps(image.data + at, across, k, size, step, to);
      }
    }
  }
}

void convolve_channels(const ImageView& image, const ConvolutionShape& shape,
                       const ChannelWeights& weights, int64_t first, int64_t last, float* rows,
                       int64_t stride) {
  const int64_t k = shape.kernel;
  const int64_t channels = image.channels;
  const int64_t columns = shape.side(image.width);
  std::vector<float> sums(static_cast<size_t>(channels));
  for (int64_t pixel = first; pixel < last; ++pixel) {
    const int64_t y = pixel / columns * shape.stride - shape.padding;
    const int64_t x = pixel % columns * shape.stride - shape.padding;
    const Taps down(y, k, image.height);
    const Taps across(x, k, image.width);
    float* to = rows + (pixel - first) * stride;
    for (int64_t m = 0; m < weights.multiplier; ++m) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (int64_t i = down.first; i < down.last; ++i) {
        for (int64_t j = across.first; j < across.last; ++j) {
          const float* from = image.data + ((y + i) * image.width + x + j) * image.column;
          add_products(weights.weight + ((m * k + i) * k + j) * channels, from, channels,
                       sums.data());
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t o = c * weights.multiplier + m;
        to[o] = sums[static_cast<size_t>(c)] + weights.bias[o];
      }
    }
  }
}

}  // namespace rondo::kernels
