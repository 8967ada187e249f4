// Layer norm and RMS norm of rows, fp32 in, fp32 or bf16 out; also of a weighted sum of rows, which
// is stored in the same pass. The backward pass computes the input gradient and the sums for the
// weights in one pass, over pieces that do not depend on the number of threads. No torch
// dependency.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"
#include "rondo/kernels/weighted_sum.h"

namespace rondo::kernels {

// Rows [rows, width]. Layer norm: y = (x - mean) / √(variance + ε) · weight + bias. RMS norm (no
// bias): y = x / √(mean of x² + ε) · weight.
struct NormShape {
  int64_t rows = 0;
  int64_t width = 0;
  double epsilon = 0.0;
  bool centered = true;  // layer norm
  bool summed = false;   // not centered: sum of x² instead of its mean, so that rows have length 1
};

// Per row, for the backward pass: the mean (0 for RMS norm) and the scaling factor.
struct NormStatistics {
  float* mean = nullptr;
  float* factor = nullptr;
};

// `bias` may be null.
template <class Out>
void norm(const NormShape& shape, const float* x, const float* weight, const float* bias, Out* y,
          const NormStatistics& statistics);

// Writes the sum `in`, of rows · width values, to `sum` and its norm to y.
template <class Out>
void norm_of_sum(const NormShape& shape, const WeightedSum& in, float* sum, const float* weight,
                 const float* bias, Out* y, const NormStatistics& statistics);

// From the gradient of y, computes those of x, weight and, if not null, bias [width]. `also`, the
// gradient of x from its other uses, is added to x_gradient if not null.
template <class Out>
void norm_gradient(const NormShape& shape, const float* x, const float* weight,
                   const NormStatistics& statistics, const Out* y_gradient, float* x_gradient,
                   float* weight_gradient, float* bias_gradient, const float* also = nullptr);

}  // namespace rondo::kernels
