// Softmax cross-entropy of rows of logits without the probabilities ever being stored: forwards one
// pass over a row, backwards another that writes its gradient. Sums are fp32
// and double, and do not depend on the number of threads. No torch here.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// Logits [rows, classes], the label of every row (below 0: the row counts for nothing).
// loss = (1 - ε)·(-log p[label]) + ε · mean over classes of -log p.
struct LabeledRows {
  const float* logits = nullptr;
  const int64_t* labels = nullptr;
  int64_t rows = 0;
  int64_t classes = 0;
  double smoothing = 0.0;  // ε
};

// Of every row, for the gradient: its largest logit m, and log Σ exp(x - m). Apart, because their
// sum would round away what tells large logits from each other.
struct SoftmaxRows {
  float* largest = nullptr;
  float* log_sum = nullptr;
};

// Every row's loss.
void cross_entropy(const LabeledRows& in, const SoftmaxRows& rows, double* losses);

// gradient [rows, classes] = factor · (softmax - target), float or Bf16; it may be the logits
// themselves.
template <class Out>
void cross_entropy_gradient(const LabeledRows& in, const SoftmaxRows& rows, double factor,
                            Out* gradient);

}  // namespace rondo::kernels
