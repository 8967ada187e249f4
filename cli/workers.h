// rondo train --workers N: one process of this program for each rank, watched over.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

// Whether this process is to start others, rather than being one of them. Error{usage} if a
// launcher has started it already as one of many.
bool starts_workers(const TrainOptions& options);

// Starts the same command as many times, each as a rank of a group that meets on this machine.
// Signals go to the first, which stops all. Returns when all have ended: 0, the code of the one
// that failed, or 7 if one was killed.
int run_workers(const TrainOptions& options);

}  // namespace rondo::cli
