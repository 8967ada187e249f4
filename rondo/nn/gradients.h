// Gradients of weights added straight to where they belong. A weight that is applied at many levels
// then has one buffer, instead of one more for every use and a pass to add it.
#pragma once

namespace rondo::nn {

// While one lives on this thread, backward passes of linear maps add to weight.grad() themselves
// instead of handing a gradient to autograd. For training, where grad() of parameters is what is
// wanted: torch::autograd::grad() would find nothing, hooks are not called.
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
