// What a model costs: parameters, by part, shared and per level, and multiply-adds of one example.
// Nothing is estimated: the network is built without memory and its forward pass walked through.
#pragma once

#include "rondo/model/network.h"

namespace rondo {

struct CostPart {
  std::string name;          // "encoder.feed_forward", "head", ...
  int64_t parameters = 0;    // each weight once
  int64_t shared = 0;        // of them, in weights that several levels play
  double multiply_adds = 0;  // every time it is played
};

struct Cost {
  int64_t parameters = 0;
  int64_t without_embeddings = 0;  // nor head
  int64_t shared = 0;              // in weights that several levels play
  int64_t per_level = 0;           // in weights that one level plays
  double multiply_adds = 0;
  double normalised = 0;  // elements that pass through a norm
  std::vector<CostPart> parts;

  // SReT's rule: five operations per normalised element on top.
  double with_norms() const { return multiply_adds + 5.0 * normalised; }
};

// `tokens`: length of the sequence counted, 0 = the model's usual one.
Cost measure_cost(const ModelConfig& config, int64_t tokens = 0);

}  // namespace rondo
