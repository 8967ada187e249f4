// Multiplies patches, a few at a time, by packed weights.
#include "rondo/nn/compiled_convolution.h"

#include <algorithm>

namespace rondo::nn {

void CompiledConvolution::forward(const kernels::ImageView& image, const Rows& pixels,
                                  RowBuffer& scratch, const kernels::Member& member) const {
  const auto [begin, end] = member.share(shape.side(image.height) * shape.side(image.width));
  if (!patches.there()) {
    return kernels::convolve_channels(image, shape, channels, begin, end, pixels[begin],
                                      pixels.stride);
  }
  constexpr int64_t kTogether = 48;  // patches: they stay in the L2 cache
  const kernels::Member alone;
  scratch.resize(kTogether, patches.w.in);
  for (int64_t first = begin; first < end; first += kTogether) {
    const int64_t count = std::min(kTogether, end - first);
    const Rows rows = scratch.rows(count);
    const Rows to = {pixels[first], count, pixels.stride};
    kernels::gather_patches(image, shape, first, first + count, rows.data, rows.stride);
    patches.forward(rows, to, alone);
    for (int64_t r = 0; r < count && relu; ++r) kernels::relu_one(to[r], out);
  }
}

}  // namespace rondo::nn
