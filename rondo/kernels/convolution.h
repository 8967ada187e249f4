// Convolutions of one image for inference. An ordinary one becomes a product with packed weights
// (packed_rows.h) of rows gathered here, a patch each; one that keeps channels apart is computed
// here. Results are pixel by pixel with channels side by side, as tokens are. No torch here.
#pragma once

#include <cstdint>

namespace rondo::kernels {

struct ConvolutionShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  // How long a side of `length` pixels is afterwards.
  int64_t side(int64_t length) const { return (length + 2 * padding - kernel) / stride + 1; }
};

// An image in memory. Planar: [channels, height, width]; else pixel by pixel, `column` numbers
// apart.
struct ImageView {
  const float* data = nullptr;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool planar = false;
  int64_t column = 0;
};

// What pixels [first, last) of the result are made of, a row each, `stride` apart: [channels,
// kernel, kernel] where the image is planar, else [kernel, kernel, channels]; zeros outside of it.
void gather_patches(const ImageView& image, const ConvolutionShape& shape, int64_t first,
                    int64_t last, float* rows, int64_t stride);

// Each channel by itself gives `multiplier` new ones, which stand side by side. The image is not
// planar.
struct ChannelWeights {
  const float* weight = nullptr;  // [multiplier, kernel, kernel, channels]
  const float* bias = nullptr;    // [channels, multiplier]
  int64_t multiplier = 1;
};
// Pixels [first, last) of the result, rows [channels · multiplier] `stride` apart.
void convolve_channels(const ImageView& image, const ConvolutionShape& shape,
                       const ChannelWeights& weights, int64_t first, int64_t last, float* rows,
                       int64_t stride);

}  // namespace rondo::kernels
