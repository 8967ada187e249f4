// Bias and activation in one pass, fp32 or bf16; exact GELU (erf) or ReLU. The backward pass
// rereads the input, so nothing is saved, and accumulates the bias gradient in the same pass, over
// pieces that do not depend on the number of threads. No torch dependency.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

enum class Curve { gelu, relu };

struct ActivationShape {
  int64_t rows = 0;
  int64_t width = 0;
  Curve curve = Curve::gelu;
};

// y [rows, width] = curve(x + bias), bias [width] or null.
template <class Number>
void activate(const ActivationShape& shape, const Number* x, const float* bias, Number* y);

// x_gradient = y_gradient · curve'(x + bias). If there is a bias and bias_gradient [width] is not
// null, it receives the sum of x_gradient over rows. x_gradient may alias y_gradient.
template <class Number>
void activate_gradient(const ActivationShape& shape, const Number* x, const float* bias,
                       const Number* y_gradient, Number* x_gradient, float* bias_gradient);

}  // namespace rondo::kernels
