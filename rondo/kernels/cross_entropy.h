// Softmax cross-entropy of rows of logits without storing probabilities: the forward pass reads a
// row once, the backward pass once more, writing its gradient. Sums are fp32 and double and do not
// depend on the number of threads. No torch dependency.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// Logits [rows, classes] and the label of each row (negative: the row is ignored).
// loss = (1 - ε)·(-log p[label]) + ε · mean over classes of -log p.
struct LabeledRows {
  const float* logits = nullptr;
  const int64_t* labels = nullptr;
  int64_t rows = 0;
  int64_t classes = 0;
  double smoothing = 0.0;  // ε
};

// Per row, for the backward pass: the largest logit m, and log Σ exp(x - m). Kept separate because
// their sum would round away the differences between large logits.
struct SoftmaxRows {
  float* largest = nullptr;
  float* log_sum = nullptr;
};

// The loss of each row.
void cross_entropy(const LabeledRows& in, const SoftmaxRows& rows, double* losses);

// gradient [rows, classes] = factor · (softmax - target), float or Bf16; may alias the logits.
template <class Out>
void cross_entropy_gradient(const LabeledRows& in, const SoftmaxRows& rows, double factor,
                            Out* gradient);

}  // namespace rondo::kernels
