// Accumulates weight gradients directly into their destination. A weight applied at many levels
// then needs one buffer, instead of one more per use and a pass to add it. And tells when a
// backward pass has completed some of the gradients.
#pragma once

#include <functional>

#include "rondo/nn/torch.h"

namespace rondo::nn {

// While an instance exists on this thread, backward passes of linear maps add to weight.grad()
// themselves instead of returning a gradient to autograd. For training, which reads grad() of
// parameters: torch::autograd::grad() would find nothing, and hooks are not called.
class GradientsInPlace {
 public:
  GradientsInPlace();
  ~GradientsInPlace();
  GradientsInPlace(const GradientsInPlace&) = delete;
  GradientsInPlace& operator=(const GradientsInPlace&) = delete;

 private:
  bool before_;
};

bool gradients_in_place();

// While an instance exists on this thread, backward passes of graphs built there call a function,
// with the number of the stage, on reaching a tensor marked by ends_stage().
class StagesOfGradients {
 public:
  using Listener = std::function<void(int64_t stage)>;
  explicit StagesOfGradients(Listener listener);
  ~StagesOfGradients();
  StagesOfGradients(const StagesOfGradients&) = delete;
  StagesOfGradients& operator=(const StagesOfGradients&) = delete;

 private:
  Listener before_;
};

// Marks a tensor whose gradient is known only after those of all parameters of a stage (and of
// those before it).
void ends_stage(const Tensor& x, int64_t stage);

}  // namespace rondo::nn
