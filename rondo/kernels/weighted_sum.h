// a·x + b·y with scalars a and b, and its gradients, in one pass each. No torch dependency.
#pragma once

#include <cstdint>

namespace rondo::kernels {

struct WeightedSum {
  int64_t count = 0;
  const float* x = nullptr;
  const float* y = nullptr;
  float a = 1.0F;
  float b = 1.0F;
};

void weighted_sum(const WeightedSum& in, float* out);

struct WeightGradients {
  double a = 0;
  double b = 0;
};
WeightGradients weighted_sum_gradient(const WeightedSum& in, const float* out_gradient,
                                      float* x_gradient, float* y_gradient);

}  // namespace rondo::kernels
