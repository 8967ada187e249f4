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
  // Class names and preprocessing of image networks, for save_model().
  std::map<std::string, std::string> metadata;
  int64_t count = 0;  // models or checkpoints averaged
};

// The newest `last` checkpoints of a run folder; 0 = all that exist. Error{bad_input} if there are
// fewer, if weights are not finite, or if one is of a different model than those before it.
AveragedModel average_checkpoints(const std::string& run, int64_t last = 0,
                                  Verify verify = Verify::checksum);

// Run folders or model files. Error{bad_input} if there are none or their configurations differ.
AveragedModel average_models(const std::vector<std::string>& models,
                             Verify verify = Verify::checksum);

}  // namespace rondo
