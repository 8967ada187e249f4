// Logits of batch after batch of images by one network in evaluation mode: what classifying,
// scoring and teachers run. Compiled once (CompiledImageNetwork), in fp32, to within 1e-5 of the
// network's own modules; by these where they do something else: with reference kernels, or under
// mixed precision.
//
// May be called from any thread; callers take turns at the runtime's threads.
#pragma once

#include "rondo/infer/image_model.h"

namespace rondo {

class ImageRunner {
 public:
  // Later changes of the network's weights are not noticed.
  explicit ImageRunner(std::shared_ptr<Network> network);

  int64_t classes() const { return compiled_->classes(); }
  // pixels [rows, 3, side, side] → logits [rows, classes].
  void forward(const float* pixels, int64_t rows, float* logits) const;
  Tensor forward(const Tensor& images) const;

 private:
  std::shared_ptr<Network> network_;
  std::shared_ptr<const CompiledImageNetwork> compiled_;
  std::shared_ptr<ImageWorkspace> workspace_;  // of whoever has the turn
};

}  // namespace rondo
