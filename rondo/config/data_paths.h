// Paths in an experiment: "~" is expanded, and run folders store absolute paths, so that a run can
// be resumed from any directory.
#pragma once

#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

// Expands "~/x" and "~" to the user's home folder; leaves anything else unchanged.
std::string expand_home(const std::string& path);

// Applies expand_home() to every path of `config`.
void expand_homes(RunConfig& config);
// Makes every path of `config` absolute, including both sides of a parallel text. Values that are
// not paths ("bytes", "bpe:4096") stay unchanged.
void make_paths_absolute(RunConfig& config);
// Strips the folder from every path of `config`, for comparison between machines that store the
// same data in different places.
void leave_out_folders(RunConfig& config);

}  // namespace rondo
