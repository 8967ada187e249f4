// A convolution compiled for inference on one image: weights packed once, batch norm folded in,
// activation in the same pass. Made by Conv2d::compile. Immutable; may be used by any number of
// threads.
#pragma once

#include "rondo/kernels/convolution.h"
#include "rondo/nn/compiled.h"

namespace rondo::nn {

struct CompiledConvolution {
  kernels::ConvolutionShape shape;
  int64_t in = 0;
  int64_t out = 0;
  bool planar = false;               // the image comes as [in, height, width]
  bool relu = false;                 // applied to the result
  CompiledLinear patches;            // applied to one patch per row; if absent:
  kernels::ChannelWeights channels;  // depthwise

  // Computes the member's share of the output pixels, as rows. `scratch` is private to the member.
  void forward(const kernels::ImageView& image, const Rows& pixels, RowBuffer& scratch,
               const kernels::Member& member) const;
};

}  // namespace rondo::nn
