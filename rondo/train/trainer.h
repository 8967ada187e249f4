// The training engine, the same for every task: steps, schedules, clipping, averages, checkpoints,
// evaluation, signals. Killed at any moment and started again, a run ends with the same weights bit
// for bit, because every random draw is a function of (seed, step) and a checkpoint holds the rest.
#pragma once

#include "rondo/train/run_folder.h"
#include "rondo/train/task.h"

namespace rondo {

// Trains `task` in `folder` until the last step, a signal or the end of patience. Returns the exit
// code: 0, or 130/143 after a saved checkpoint. Error{diverged} after five losses in a row that are
// not finite.
int train(Task& task, const RunConfig& config, RunFolder& folder);

// What a run will take, measured by doing a few steps without writing anything.
struct DryRun {
  double seconds_per_step = 0;
  int64_t peak_bytes = 0;    // of this process so far
  int64_t tensor_bytes = 0;  // of tensors at one time; 0 without our allocator
};
DryRun dry_run(Task& task, const RunConfig& config, int64_t steps = 3);

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
