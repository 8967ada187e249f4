// Batch norms synchronized over processes.
#include "rondo/nn/synchronized_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const SumOverProcesses* current_sum = nullptr;

// Sums several vectors [C] over the processes, in double.
void sum_together(const SumOverProcesses& sum, std::vector<at::Tensor>& vectors) {
  at::Tensor all = at::cat(vectors).contiguous();
  sum(all.data_ptr<double>(), all.numel());
  int64_t at = 0;
  for (at::Tensor& v : vectors) {
    v = all.narrow(0, at, v.numel());
    at += v.numel();
  }
}

at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& like) {
  return vector.to(like.scalar_type()).view({1, -1, 1, 1});
}

at::Tensor channel_sum(const at::Tensor& x) { return x.sum({0, 2, 3}, false, at::kDouble); }

class SynchronizedNormFunction : public torch::autograd::Function<SynchronizedNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const RunningStatistics& running,
                            double epsilon, const SumOverProcesses& sum) {
    const auto rows = static_cast<double>(x.numel() / x.size(1));
    std::vector<at::Tensor> sums = {at::full({1}, rows, at::kDouble), channel_sum(x)};
    sum_together(sum, sums);
    const double count = sums[0].item<double>();
    const at::Tensor mean = sums[1] / count;               // [C]
    const at::Tensor centered = x - per_channel(mean, x);  // [B, C, H, W]
    std::vector<at::Tensor> squares = {channel_sum(centered.square())};
    sum_together(sum, squares);
    const at::Tensor variance = squares[0] / count;                  // [C]
    const at::Tensor scale = (variance + epsilon).rsqrt();           // [C]
    const at::Tensor normalized = centered * per_channel(scale, x);  // [B, C, H, W]
    const double unbiased = count / std::max(1.0, count - 1.0);
    at::Tensor running_mean = running.mean;
    at::Tensor running_variance = running.variance;
    running_mean.mul_(1.0 - running.momentum).add_(mean, running.momentum);
    running_variance.mul_(1.0 - running.momentum).add_(variance, running.momentum * unbiased);
    context->save_for_backward({normalized, weight, scale});
    context->saved_data["count"] = count;
    return normalized * per_channel(weight, x) + per_channel(bias, x);
  }

  // dx = w · scale · (dy - mean(dy) - x̂ · mean(dy · x̂)), means over the rows of all processes.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto& [normalized, weight, scale] = std::tie(saved[0], saved[1], saved[2]);
    const at::Tensor& dy = gradients[0];
    const double count = context->saved_data["count"].toDouble();
    std::vector<at::Tensor> sums = {channel_sum(dy), channel_sum(dy * normalized)};
    const at::Tensor d_bias = sums[0].to(weight.scalar_type());
    const at::Tensor d_weight = sums[1].to(weight.scalar_type());
    // Still synchronized, as the forward pass was: both are within one step.
    sum_together(*current_sum, sums);
    const at::Tensor inner =
        dy - per_channel(sums[0] / count, dy) - normalized * per_channel(sums[1] / count, dy);
    const at::Tensor dx = inner * per_channel(scale * weight.to(at::kDouble), dy);
    return {dx, d_weight, d_bias, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

SynchronizedNorms::SynchronizedNorms(SumOverProcesses sum) : sum_(std::move(sum)) {
  current_sum = &sum_;
}

SynchronizedNorms::~SynchronizedNorms() { current_sum = nullptr; }

const SumOverProcesses* norms_are_summed_by() { return current_sum; }

at::Tensor synchronized_batch_norm(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const RunningStatistics& running,
                                   double epsilon, const SumOverProcesses& sum) {
  return SynchronizedNormFunction::apply(x, weight, bias, running, epsilon, sum);
}

}  // namespace rondo::nn
