// The paths that an experiment names: "~" is expanded, and a run folder keeps them absolute, so
// that the run can be continued from anywhere.
#pragma once

#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

// "~/x" and "~" with the user's home folder; all else stays as it is.
std::string expand_home(const std::string& path);

// Every path of `config` with expand_home().
void expand_homes(RunConfig& config);
// Every path of `config` absolute. Where both sides of a parallel text are named, each of them;
// words that are no paths ("bytes", "bpe:4096") stay.
void make_paths_absolute(RunConfig& config);
// Every path of `config` without its folder: what is the same on machines that keep the same data
// in different places.
void leave_out_folders(RunConfig& config);

}  // namespace rondo
