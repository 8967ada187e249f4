// run.json of a run folder: what trained it, where and on what.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/train/task.h"

namespace rondo::cli {

// Parameters, multiply-adds, version, commit, CPU, threads and a checksum of the training data. The
// folder's first record stays; later starts of the same run are added below "continued".
// `recipe`: what the run was started from.
void write_run_record(const std::string& folder, const RunConfig& config, const Task& task,
                      const std::string& recipe);

}  // namespace rondo::cli
