// Accumulates weight gradients directly into their destination. A weight applied at many levels
// then needs one buffer, instead of one more per use and a pass to add it.
#pragma once

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

}  // namespace rondo::nn
