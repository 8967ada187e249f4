// The running average of a network's weights.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/train/task.h"

namespace rondo {

// The average as it begins; empty if the experiment has none.
NamedTensors first_average(const Network& network, const TrainConfig& config);
// One step's weights join it.
void update_average(NamedTensors& average, const Network& network, double decay);

// The weights to evaluate or serve with: `network`'s own, or their running average while it lives.
class AveragedWeights {
 public:
  AveragedWeights(Network& network, const NamedTensors& average);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  Network& network_;
  NamedTensors kept_;
};

}  // namespace rondo
