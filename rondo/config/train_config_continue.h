// What may change when a run is resumed, torch-free.
#pragma once

#include <string>
#include <vector>

#include "rondo/config/train_config.h"

namespace rondo {

// A key of the experiment that changed on resuming, with its values as TOML.
struct ConfigChange {
  std::string key;  // "schedule.rate"
  std::string before;
  std::string now;
};

// A key of an experiment and its value as TOML.
struct DumpedKey {
  std::string key;  // dotted
  std::string name;
  std::string value;
};
// All keys in dump order, which is the same for all experiments of one task and kind of network.
std::vector<DumpedKey> dumped_keys(const RunConfig& config);

// Dotted keys that may change on resuming. They control the length of the run, how often it reports
// and saves, how it computes, and what a step does to the weights. The other keys determine what
// the weights mean, which data they have seen, or what a checkpoint contains.
const std::vector<std::string>& changeable_keys();

// The keys in which `now` differs from `before`, the experiment of the run folder `run`. Throws
// Error{bad_input} naming the first that must not change.
std::vector<ConfigChange> config_changes(const std::string& run, const RunConfig& before,
                                         const RunConfig& now);

}  // namespace rondo
