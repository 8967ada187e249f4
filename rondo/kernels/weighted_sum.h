// a·x + b·y with two numbers a and b, and its gradients, in one pass each. y may be bf16. No torch
// here.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

template <class Number>
struct WeightedSum {
  int64_t count = 0;
  const float* x = nullptr;
  const Number* y = nullptr;
  float a = 1.0F;
  float b = 1.0F;
};

// Numbers are float or Bf16.
template <class Number>
void weighted_sum(const WeightedSum<Number>& in, float* out);

struct WeightGradients {
  double a = 0;
  double b = 0;
};
template <class Number>
WeightGradients weighted_sum_gradient(const WeightedSum<Number>& in, const float* out_gradient,
                                      float* x_gradient, Number* y_gradient);

}  // namespace rondo::kernels
