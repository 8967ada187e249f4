// The device that a network is trained on. Host tensors that only steer the computation (positions,
// resets, permutations) stay on the CPU; everything else follows the device of its inputs.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/nn/torch.h"
#include "rondo/train/process_group.h"

namespace rondo {

// train.device. Throws Error{bad_input} if this libtorch or this machine does not have it, or if a
// group of processes (`group` not null) is to train on another device than the CPU.
at::Device training_device(const TrainConfig& config, const ProcessGroup* group);

}  // namespace rondo
