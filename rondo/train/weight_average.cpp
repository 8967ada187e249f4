// Exponential moving averages of weights.
#include "rondo/train/weight_average.h"

namespace rondo {

NamedTensors first_average(const Network& network, const TrainConfig& config) {
  NamedTensors average;
  if (config.ema <= 0.0) return average;
  for (const auto& item : network.named_parameters()) {
    average[item.key()] = item.value().detach().clone();
  }
  return average;
}

void update_average(NamedTensors& average, const Network& network, double decay) {
  if (average.empty()) return;
  const at::NoGradGuard no_grad;
  for (const auto& item : network.named_parameters()) {
    average.at(item.key()).mul_(decay).add_(item.value(), 1.0 - decay);
  }
}

AveragedWeights::AveragedWeights(Network& network, const NamedTensors& average)
    : network_(network) {
  const at::NoGradGuard no_grad;
  if (average.empty()) return;
  for (const auto& item : network.named_parameters()) {
    Tensor value = item.value();
    kept_[item.key()] = value.detach().clone();
    value.copy_(average.at(item.key()));
  }
}

AveragedWeights::~AveragedWeights() {
  const at::NoGradGuard no_grad;
  for (const auto& item : network_.named_parameters()) {
    const auto found = kept_.find(item.key());
    if (found == kept_.end()) continue;
    Tensor value = item.value();
    value.copy_(found->second);
  }
}

}  // namespace rondo
