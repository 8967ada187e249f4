// run.json of a run folder: how, where and on what data it was trained.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/train/task.h"

namespace rondo::cli {

// Parameters, multiply-adds, version, commit, CPU, threads and a checksum of the training data. The
// first record is kept; when the run resumes, later starts are appended to "continued".
// `recipe`: what the run was started from.
void write_run_record(const std::string& folder, const RunConfig& config, const Task& task,
                      const std::string& recipe);

}  // namespace rondo::cli
