// Convolutions of one image for inference. An ordinary convolution is a matmul of gathered patches,
// one per row, with packed weights (packed_rows.h); depthwise convolutions are computed here.
// Results are channels-last, like tokens. No torch dependency.
#pragma once

#include <cstdint>

namespace rondo::kernels {

struct ConvolutionShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  // Output length of a side of `length` pixels.
  int64_t side(int64_t length) const { return (length + 2 * padding - kernel) / stride + 1; }
};

// An image in memory. Planar: [channels, height, width]; otherwise channels-last, pixels `column`
// values apart.
struct ImageView {
  const float* data = nullptr;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool planar = false;
  int64_t column = 0;
};

// Gathers the patches of output pixels [first, last), one per row, rows `stride` apart: [channels,
// kernel, kernel] if the image is planar, otherwise [kernel, kernel, channels]; zeros outside the
// image.
void gather_patches(const ImageView& image, const ConvolutionShape& shape, int64_t first,
                    int64_t last, float* rows, int64_t stride);

// Depthwise: each channel gives `multiplier` adjacent output channels. The image is not planar.
struct ChannelWeights {
  const float* weight = nullptr;  // [multiplier, kernel, kernel, channels]
  const float* bias = nullptr;    // [channels, multiplier]
  int64_t multiplier = 1;
};
// Output pixels [first, last), rows [channels · multiplier] `stride` apart.
void convolve_channels(const ImageView& image, const ConvolutionShape& shape,
                       const ChannelWeights& weights, int64_t first, int64_t last, float* rows,
                       int64_t stride);

}  // namespace rondo::kernels
