// Cross-entropy by torch operations: logits of whole batches are small where these are used. Large
// ones are never materialized (head_loss.h).
#include "rondo/nn/loss.h"

#include "rondo/nn/ops.h"
#include "rondo/nn/precision.h"

namespace rondo::nn {
namespace {

// Sums of bf16 logits would also be bf16.
Tensor widened(const Tensor& logits) {
  const Tensor x = as_wanted(Operation::loss, logits);
  return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
}

}  // namespace

Tensor cross_entropy_sum(const Tensor& logits, const Tensor& labels, double smoothing) {
  if (logits.is_meta()) return shape_only({}, logits);
  constexpr int64_t ignored = -100;
  const Tensor kept = at::where(labels.ge(0), labels, at::full_like(labels, ignored));
  return at::cross_entropy_loss(widened(logits), kept, {}, at::Reduction::Sum, ignored, smoothing);
}

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets) {
  return -(targets * at::log_softmax(widened(logits), -1)).sum();
}

Tensor soft_distillation(const Tensor& student, const Tensor& teacher) {
  return soft_cross_entropy(student, teacher.softmax(-1));
}

}  // namespace rondo::nn
