// One batch for any number of processes, torch-free.
#pragma once

#include "rondo/config/train_config.h"

namespace rondo {

// The experiment as each of `processes` runs it: with train.global_batch, train.batch and
// train.accumulate are those that make so many rows of all processes in one step. Batches of images
// and documents get fewer rows before they are accumulated; of sentence pairs, which are cut by
// tokens, every process reads whole batches. Error{bad_input} if it cannot be divided so.
RunConfig share_of_batch(RunConfig config, int64_t processes);

}  // namespace rondo
