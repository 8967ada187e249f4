// Bias and activation in one pass, fp32 or bf16; the exact GELU (by erf) or ReLU. Backwards the
// input is read again instead of anything being kept, and the bias's gradient is summed on the way,
// in the same pieces whatever the number of threads. No torch here.
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

// x_gradient = y_gradient · curve'(x + bias); bias_gradient [width], where there is a bias and it
// is not null, the sum over rows of that. x_gradient may be y_gradient.
template <class Number>
void activate_gradient(const ActivationShape& shape, const Number* x, const float* bias,
                       const Number* y_gradient, Number* x_gradient, float* bias_gradient);

}  // namespace rondo::kernels
