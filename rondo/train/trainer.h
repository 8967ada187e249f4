// The training engine, shared by all tasks: steps, schedules, clipping, averages, checkpoints,
// evaluation, signals. A run that is killed at any time and restarted ends with bitwise the same
// weights: every random draw is a function of (seed, step), and a checkpoint holds the rest.
#pragma once

#include <functional>

#include "rondo/train/run_folder.h"
#include "rondo/train/task.h"
#include "rondo/train/weight_average.h"

namespace rondo {

// Trains `task` in `folder` until the last step, a signal or the end of patience. Returns the exit
// code: 0, or 128 plus the signal number (129, 130, 143) after saving a checkpoint. Error{diverged}
// after five non-finite losses in a row, or if weights are not finite; these are never saved. If
// the run cannot be resumed, throws an Error before anything in the folder is changed. `begun`, if
// given, is called with the folder's path before the first step, once the folder may be written to.
using RunBegun = std::function<void(const std::string& run)>;
int train(Task& task, const RunConfig& config, RunFolder& folder, const RunBegun& begun = {});

// The same for one process of a group; all of them call it, each with its own `config` and `task`.
// Only rank 0 has a folder (null in the others) and writes. A signal to any process stops all.
// Error{group} if another process is lost.
int train_in_group(Task& task, const RunConfig& config, RunFolder* folder, ProcessGroup& group,
                   const RunBegun& begun = {});

// The time and memory that a run will take, measured over a few steps without writing anything.
struct DryRun {
  double seconds_per_step = 0;
  int64_t peak_bytes = 0;    // peak of this process so far
  int64_t tensor_bytes = 0;  // peak of tensors; 0 without our allocator
};
DryRun dry_run(Task& task, const RunConfig& config, int64_t steps = 3);

}  // namespace rondo
