// The training engine, the same for every task: steps, schedules, clipping, averages, checkpoints,
// evaluation, signals. Killed at any moment and started again, a run ends with the same weights bit
// for bit, because every random draw is a function of (seed, step) and a checkpoint holds the rest.
#pragma once

#include <functional>

#include "rondo/train/run_folder.h"
#include "rondo/train/task.h"
#include "rondo/train/weight_average.h"

namespace rondo {

// Trains `task` in `folder` until the last step, a signal or the end of patience. Returns the exit
// code: 0, or 128 and the signal's number (129, 130, 143) after a saved checkpoint. Error{diverged}
// after five losses in a row that are not finite, or when weights are not, none of which is saved.
// Whatever cannot be continued is an Error before anything in the folder is changed.
// `begun`, if given, is called with the folder's path before the first step, when it may be
// written.
using RunBegun = std::function<void(const std::string& run)>;
int train(Task& task, const RunConfig& config, RunFolder& folder, const RunBegun& begun = {});

// The same as one process of a group, all of which call it; `config` and `task` are those of this
// process. Only the first has a folder (null in the others) and writes. A signal to any of them
// stops all. Error{group} if another process is lost.
int train_in_group(Task& task, const RunConfig& config, RunFolder* folder, ProcessGroup& group,
                   const RunBegun& begun = {});

// What a run will take, measured by doing a few steps without writing anything.
struct DryRun {
  double seconds_per_step = 0;
  int64_t peak_bytes = 0;    // of this process so far
  int64_t tensor_bytes = 0;  // of tensors at one time; 0 without our allocator
};
DryRun dry_run(Task& task, const RunConfig& config, int64_t steps = 3);

}  // namespace rondo
