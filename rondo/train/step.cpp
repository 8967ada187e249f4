// Gradients of a step.
#include "rondo/train/step.h"

#include <algorithm>
#include <cmath>

#include "rondo/base/random.h"
#include "rondo/kernels/optimizer.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/precision.h"
#include "rondo/recurrence/stack.h"

namespace rondo {

void prepare_network(Network& network, const TrainConfig& config) {
  for (const auto& [name, stack] : network.stacks()) {
    stack->recompute_every(config.recompute_levels);
  }
  network.batches_per_step(config.accumulate);
}

StepLoss compute_gradients(Task& task, const TrainConfig& config, int64_t number, int64_t rank,
                           const nn::StagesOfGradients::Listener& completed) {
  at::manual_seed(counter_draw(static_cast<uint64_t>(config.seed), "step",
                               static_cast<uint64_t>(number), static_cast<uint64_t>(rank)));
  task.network().train();
  for (const auto& item : task.network().named_parameters()) item.value().mutable_grad() = Tensor();
  StepLoss total;
  for (int64_t i = 0; i < config.accumulate; ++i) {
    const nn::MixedPrecision mixed(config.precision == "bf16");
    const nn::GradientsInPlace in_place;
    const bool last = i + 1 == config.accumulate;
    const nn::StagesOfGradients stages(last ? completed : nullptr);
    const LossSum loss = task.next_loss();
    loss.sum.backward();
    const double sum = loss.sum.item<double>();
    if (!std::isfinite(sum)) task.forget_last();  // or its state would poison later batches
    total.sum += sum;
    total.count += loss.count;
  }
  return total;
}

GradientScale scale_of_gradients(const Network& network, double clip, int64_t count) {
  const at::NoGradGuard no_grad;
  const bool fused = nn::kernels_in_use() == nn::Kernels::fused;
  std::vector<kernels::Floats> parts;
  double squares = 0;
  for (const auto& item : network.named_parameters()) {
    const Tensor g = item.value().grad();
    if (!g.defined()) continue;
    if (fused && g.is_cpu() && g.scalar_type() == at::kFloat && g.is_contiguous()) {
      parts.push_back({g.data_ptr<float>(), g.numel()});
    } else {
      squares += std::pow(g.norm().item<double>(), 2);
    }
  }
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(count, 1));
  const double norm = mean * std::sqrt(squares + kernels::sum_of_squares(parts));
  const bool clipped = clip > 0.0 && norm > clip;
  return {norm, clipped ? mean * clip / (norm + 1e-6) : mean};
}

}  // namespace rondo
