// Averaging weights: the mean of several checkpoints of one run, or of several models.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rondo/model/network.h"

namespace rondo {

struct AveragedModel {
  ModelConfig config;
  std::shared_ptr<Network> network;
  // Of image networks their classes and how images are prepared; for save_model().
  std::map<std::string, std::string> metadata;
  int64_t count = 0;  // of what it is the mean
};

// The newest `last` checkpoints of a run folder, all that are kept for 0. Error{bad_input} if there
// are fewer, if their weights are not finite, or if one is of another model than those before it.
AveragedModel average_checkpoints(const std::string& run, int64_t last = 0);

// Run folders or model files. Error{bad_input} if there are none, or if they are not of one
// configuration.
AveragedModel average_models(const std::vector<std::string>& models,
                             Verify verify = Verify::checksum);

}  // namespace rondo
