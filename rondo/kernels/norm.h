// Layer norm and RMS norm of rows, fp32 in, fp32 or bf16 out; of a sum
// of rows too, which is kept, in the same pass. Backwards one pass gives the gradient of the input
// and sums for the weights, which are cut into the same pieces whatever the number of threads. No
// torch here.
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
  bool summed =
      false;  // not centered: the sum of x² in place of its mean, so that rows have length 1
};

// Of every row, for the gradient: its mean (0 for RMS norm) and the factor that it is scaled with.
struct NormStatistics {
  float* mean = nullptr;
  float* factor = nullptr;
};

// `bias` may be null.
template <class Out>
void norm(const NormShape& shape, const float* x, const float* weight, const float* bias, Out* y,
          const NormStatistics& statistics);

// The sum `in`, of rows · width numbers, to `sum`, and its norm to y.
template <class Out>
void norm_of_sum(const NormShape& shape, const WeightedSum& in, float* sum, const float* weight,
                 const float* bias, Out* y, const NormStatistics& statistics);

// From the gradient of y that of x, of weight and, where not null, of bias [width]. What else x's
// gradient has, of those who read x beside the norm, may be given and is added.
template <class Out>
void norm_gradient(const NormShape& shape, const float* x, const float* weight,
                   const NormStatistics& statistics, const Out* y_gradient, float* x_gradient,
                   float* weight_gradient, float* bias_gradient, const float* also = nullptr);

}  // namespace rondo::kernels
