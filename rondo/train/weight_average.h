// The exponential moving average of a network's weights.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/train/task.h"

namespace rondo {

// The initial average; empty if train.ema is 0.
NamedTensors first_average(const Network& network, const TrainConfig& config);
// Updates the average with the weights of one step.
void update_average(NamedTensors& average, const Network& network, double decay);

// Replaces `network`'s weights by their average, if there is one, during its lifetime.
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
