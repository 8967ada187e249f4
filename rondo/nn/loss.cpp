// Cross-entropy with a gradient. Of the forward pass only one number per row is kept.
#include "rondo/nn/loss.h"

#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "rondo/kernels/cross_entropy.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/precision.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool kernel_takes(const Tensor& logits) {
  const at::ScalarType type = logits.scalar_type();
  return kernels_in_use() == Kernels::fused && logits.is_cpu() && logits.dim() == 2 &&
         logits.size(1) > 0 && (type == at::kFloat || type == at::kBFloat16);
}

template <class Number>
const Number* numbers(const Tensor& t) {
  return static_cast<const Number*>(t.data_ptr());
}

template <class Number>
kernels::LabelledRows<Number> labelled_rows(const Tensor& logits, const Tensor& labels,
                                            double smoothing) {
  return {numbers<Number>(logits), labels.data_ptr<int64_t>(), logits.size(0), logits.size(1),
          smoothing};
}

template <class Number>
kernels::TargetedRows<Number> targeted_rows(const Tensor& logits, const Tensor& targets) {
  return {numbers<Number>(logits), targets.data_ptr<float>(), logits.size(0), logits.size(1)};
}

// One tensor [2, N] for what the gradient needs of every row.
kernels::SoftmaxRows softmax_rows(const Tensor& t) {
  return {t.data_ptr<float>(), t.data_ptr<float>() + t.size(1)};
}

Tensor sum_of(const std::vector<double>& losses) {
  return at::scalar_tensor(std::accumulate(losses.begin(), losses.end(), 0.0), at::kFloat);
}

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels,
                        double smoothing) {
    const Tensor x = logits.contiguous();  // [N, V]
    const Tensor rows = at::empty({2, x.size(0)}, at::kFloat);
    std::vector<double> losses(static_cast<size_t>(x.size(0)));
    const kernels::SoftmaxRows sums = softmax_rows(rows);
    if (x.scalar_type() == at::kFloat) {
      kernels::cross_entropy(labelled_rows<float>(x, labels, smoothing), sums, losses.data());
    } else {
      kernels::cross_entropy(labelled_rows<kernels::Bf16>(x, labels, smoothing), sums,
                             losses.data());
    }
    context->save_for_backward({x, labels, rows});
    context->saved_data["smoothing"] = smoothing;
    return sum_of(losses);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const double factor = gradients[0].item<double>();
    const kernels::SoftmaxRows sums = softmax_rows(saved[2]);
    const Tensor g = at::empty_like(x);  // [N, V]
    if (x.scalar_type() == at::kFloat) {
      kernels::cross_entropy_gradient(labelled_rows<float>(x, saved[1], smoothing), sums, factor,
                                      g.data_ptr<float>());
    } else {
      kernels::cross_entropy_gradient(labelled_rows<kernels::Bf16>(x, saved[1], smoothing), sums,
                                      factor, static_cast<kernels::Bf16*>(g.data_ptr()));
    }
    return {g, Tensor(), Tensor()};
  }
};

class SoftCrossEntropy : public torch::autograd::Function<SoftCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets) {
    const Tensor x = logits.contiguous();
    const Tensor t = targets.contiguous();
    const Tensor rows = at::empty({2, x.size(0)}, at::kFloat);
    const Tensor masses = at::empty({x.size(0)}, at::kFloat);
    std::vector<double> losses(static_cast<size_t>(x.size(0)));
    const kernels::SoftmaxRows sums = softmax_rows(rows);
    auto* mass = masses.data_ptr<float>();
    if (x.scalar_type() == at::kFloat) {
      kernels::soft_cross_entropy(targeted_rows<float>(x, t), sums, mass, losses.data());
    } else {
      kernels::soft_cross_entropy(targeted_rows<kernels::Bf16>(x, t), sums, mass, losses.data());
    }
    context->save_for_backward({x, t, rows, masses});
    return sum_of(losses);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const double factor = gradients[0].item<double>();
    const kernels::SoftmaxRows sums = softmax_rows(saved[2]);
    const auto* mass = saved[3].data_ptr<float>();
    const Tensor g = at::empty_like(x);  // [N, V]
    if (x.scalar_type() == at::kFloat) {
      kernels::soft_cross_entropy_gradient(targeted_rows<float>(x, saved[1]), sums, mass, factor,
                                           g.data_ptr<float>());
    } else {
      kernels::soft_cross_entropy_gradient(targeted_rows<kernels::Bf16>(x, saved[1]), sums, mass,
                                           factor, static_cast<kernels::Bf16*>(g.data_ptr()));
    }
    return {g, Tensor()};
  }
};

// For torch's operations, whose sums would be bf16 too.
Tensor widened(const Tensor& logits) {
  const Tensor x = as_wanted(Operation::loss, logits);
  return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
}

}  // namespace

Tensor cross_entropy_sum(const Tensor& logits, const Tensor& labels, double smoothing) {
  if (kernel_takes(logits)) return CrossEntropy::apply(logits, labels.contiguous(), smoothing);
  constexpr int64_t ignored = -100;
  const Tensor kept = at::where(labels.ge(0), labels, at::full_like(labels, ignored));
  return at::cross_entropy_loss(widened(logits), kept, {}, at::Reduction::Sum, ignored, smoothing);
}

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets) {
  if (kernel_takes(logits) && targets.scalar_type() == at::kFloat && !targets.requires_grad() &&
      targets.sizes() == logits.sizes()) {
    return SoftCrossEntropy::apply(logits, targets);
  }
  return -(targets * at::log_softmax(widened(logits), -1)).sum();
}

Tensor soft_distillation(const Tensor& student, const Tensor& teacher) {
  return soft_cross_entropy(student, teacher.softmax(-1));
}

}  // namespace rondo::nn
