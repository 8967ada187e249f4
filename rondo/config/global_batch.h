// A global batch size independent of the number of processes, torch-free.
#pragma once

#include "rondo/config/train_config.h"

namespace rondo {

// The experiment as run by each of `processes`. With train.global_batch, sets train.batch and
// train.accumulate so that one step of all processes covers that many rows. Batches of images and
// documents shrink before they are accumulated; batches of sentence pairs, which are sized by
// tokens, stay whole. Throws Error{bad_input} if the batch cannot be divided evenly.
RunConfig share_of_batch(RunConfig config, int64_t processes);

}  // namespace rondo
