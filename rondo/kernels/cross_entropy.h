// Softmax cross-entropy of rows of logits, fp32 or bf16, without the probabilities ever being
// stored: forwards one pass over a row, backwards another that writes its gradient. Sums are fp32
// and double, and do not depend on the number of threads. No torch here.
#pragma once

#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// Logits [rows, classes], the label of every row (below 0: the row counts for nothing).
// loss = (1 - ε)·(-log p[label]) + ε · mean over classes of -log p.
template <class Number>
struct LabelledRows {
  const Number* logits = nullptr;
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
void cross_entropy(const LabelledRows<float>& in, const SoftmaxRows& rows, double* losses);
void cross_entropy(const LabelledRows<Bf16>& in, const SoftmaxRows& rows, double* losses);

// gradient [rows, classes] = factor · (softmax - target); `gradient` may be the logits themselves
// where both are of one type.
void cross_entropy_gradient(const LabelledRows<float>& in, const SoftmaxRows& rows, double factor,
                            float* gradient);
void cross_entropy_gradient(const LabelledRows<Bf16>& in, const SoftmaxRows& rows, double factor,
                            Bf16* gradient);
void cross_entropy_gradient(const LabelledRows<float>& in, const SoftmaxRows& rows, double factor,
                            Bf16* gradient);

// The same for targets [rows, classes]: loss = -Σ target · log p. `masses`: the sum of every row's
// targets.
template <class Number>
struct TargetedRows {
  const Number* logits = nullptr;
  const float* targets = nullptr;
  int64_t rows = 0;
  int64_t classes = 0;
};
void soft_cross_entropy(const TargetedRows<float>& in, const SoftmaxRows& rows, float* masses,
                        double* losses);
void soft_cross_entropy(const TargetedRows<Bf16>& in, const SoftmaxRows& rows, float* masses,
                        double* losses);
void soft_cross_entropy_gradient(const TargetedRows<float>& in, const SoftmaxRows& rows,
                                 const float* masses, double factor, float* gradient);
void soft_cross_entropy_gradient(const TargetedRows<Bf16>& in, const SoftmaxRows& rows,
                                 const float* masses, double factor, Bf16* gradient);

}  // namespace rondo::kernels
