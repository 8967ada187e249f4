// rondo train --workers N: starts and supervises one process per rank.
#pragma once

#include <optional>
#include <string>

#include "cli/verbs.h"

namespace rondo::cli {

// This process's place in a group as its environment has it, unchecked.
struct LaunchedPlace {
  std::string launcher;  // "Slurm"
  std::string rank, size;
};
// Nothing if no launcher started this process.
std::optional<LaunchedPlace> launched_place();

// Whether this process starts the workers, rather than being one. Throws Error{usage} if a launcher
// already started it as one of several.
bool starts_workers(const TrainOptions& options);

// Starts the same command once per rank, as a group on this machine. Signals are forwarded to rank
// 0, which stops all. Returns when all have ended: 0, the exit code of the one that failed, or 7 if
// one was killed.
int run_workers(const TrainOptions& options);

}  // namespace rondo::cli
