// Cross-entropy of logits, against labels or against probabilities.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::nn {

// Sum over rows of logits [N, V] of (1 - ε)·(-log p[label]) + ε · mean over V of -log p; rows with
// a negative label [N] are ignored. bf16 logits are summed in fp32; the result is never bf16.
Tensor cross_entropy_sum(const Tensor& logits, const Tensor& labels, double smoothing);

// Sum over rows of -Σ targets · log softmax(logits), both [N, V].
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets);

// SReT's soft distillation: the same with the teacher's probabilities as targets, both given as
// logits [N, V]. No labels, no temperature.
Tensor soft_distillation(const Tensor& student, const Tensor& teacher);

}  // namespace rondo::nn
