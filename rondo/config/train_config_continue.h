// What may differ between the first start of a run and its continuation, torch-free.
#pragma once

#include <string>
#include <vector>

#include "rondo/config/train_config.h"

namespace rondo {

// A key of the experiment that was changed on continuing, with its values as TOML.
struct ConfigChange {
  std::string key;  // "schedule.rate"
  std::string before;
  std::string now;
};

// A key of an experiment with its value as TOML.
struct DumpedKey {
  std::string key;  // dotted
  std::string name;
  std::string value;
};
// All keys in the order in which they are dumped, the same for all experiments of one task and kind
// of network.
std::vector<DumpedKey> dumped_keys(const RunConfig& config);

// Keys that may be changed on continuing, dotted. They say how long the run is, how often it
// reports and saves, how it computes, and what a step does to the weights; the others say what the
// weights mean, which data they have seen, or what a checkpoint holds.
const std::vector<std::string>& changeable_keys();

// The keys in which `now` differs from `before`, the experiment of the run folder `run`.
// Error{bad_input} naming the first that may not be changed.
std::vector<ConfigChange> config_changes(const std::string& run, const RunConfig& before,
                                         const RunConfig& now);

}  // namespace rondo
