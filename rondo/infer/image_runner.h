// Computes logits of image batches with one network in evaluation mode, for classification,
// evaluation and distillation teachers. Compiled once (CompiledImageNetwork), in fp32, to within
// 1e-5 of the network's own modules, which run instead with reference kernels or under mixed
// precision.
//
// May be called from any thread; callers take turns at the runtime's threads.
#pragma once

#include "rondo/infer/image_model.h"

namespace rondo {

class ImageRunner {
 public:
  // Later changes to the network's weights have no effect.
  explicit ImageRunner(std::shared_ptr<Network> network);

  int64_t classes() const { return compiled_->classes(); }
  // pixels [rows, 3, side, side] → logits [rows, classes].
  void forward(const float* pixels, int64_t rows, float* logits) const;
  Tensor forward(const Tensor& images) const;

 private:
  std::shared_ptr<Network> network_;
  std::shared_ptr<const CompiledImageNetwork> compiled_;
  std::shared_ptr<ImageWorkspace> workspace_;  // used by the caller that has the turn
};

}  // namespace rondo
