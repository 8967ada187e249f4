// The parts of one optimizer step, shared by training and its dry run.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/nn/gradients.h"
#include "rondo/train/task.h"

namespace rondo {

// Sets the parts of a network that depend on training options.
void prepare_network(Network& network, const TrainConfig& config);

// Sum and count of the losses of one step's batches; gradients are left in the parameters.
struct StepLoss {
  double sum = 0;
  int64_t count = 0;
};
// `rank` in a group of processes: each draws its own dropout masks. `completed` is called when the
// gradients of a stage (Network::gradient_stages) are those of all batches.
StepLoss compute_gradients(Task& task, const TrainConfig& config, int64_t number, int64_t rank = 0,
                           const nn::StagesOfGradients::Listener& completed = {});

// The norm of the mean gradient over `count` losses, and the factor that turns summed gradients
// into that mean, clipped (`clip` 0: no clipping).
struct GradientScale {
  double norm = 0;
  double factor = 1;
};
GradientScale scale_of_gradients(const Network& network, double clip, int64_t count);

}  // namespace rondo
