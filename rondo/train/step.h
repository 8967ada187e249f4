// The parts of one optimizer step, shared by training and its dry run.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/train/task.h"

namespace rondo {

// Tells parts of a network what they must know of the training around them.
void prepare_network(Network& network, const TrainConfig& config);

// Sum and count of the losses of one step's batches, their gradients left in the parameters.
struct StepLoss {
  double sum = 0;
  int64_t count = 0;
};
// `rank` of a group of processes: each draws its own dropout.
StepLoss compute_gradients(Task& task, const TrainConfig& config, int64_t number, int64_t rank = 0);

// The joint norm of the mean gradient over `count` losses, and what gradients are to be multiplied
// with so that they are that mean, clipped (`clip` 0: not).
struct GradientScale {
  double norm = 0;
  double factor = 1;
};
GradientScale scale_of_gradients(const Network& network, double clip, int64_t count);

}  // namespace rondo
