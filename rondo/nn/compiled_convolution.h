// A convolution as inference runs it, for one image: weights packed once, batch norm folded in, the
// activation in the same pass. Made by Conv2d::compile. Immutable, and read by any number of
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
  bool relu = false;                 // of the result
  CompiledLinear patches;            // a row of it for a patch; not there:
  kernels::ChannelWeights channels;  // every channel by itself

  // The image → pixels of the result as rows, the member's of them. `scratch` is the member's own.
  void forward(const kernels::ImageView& image, const Rows& pixels, RowBuffer& scratch,
               const kernels::Member& member) const;
};

}  // namespace rondo::nn
