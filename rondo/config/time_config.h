// What a level may see of the past, as a user writes it under [model.time]. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/config/depth_config.h"

namespace rondo {

// The names of all kinds (time_kind.h).
std::vector<std::string> time_kind_names();

struct TimeConfig {
  std::string kind = "window";
  int64_t window = 512;
  int64_t segment = 4096;
  bool attend_self = false;
  bool mask_empty_cache = false;
  bool normalize = true;
  // block-recurrent and feedback
  int64_t states = 512;
  bool state_ids = true;
  std::vector<int64_t> recurrent_layers = {10};
  std::string gate = "fixed";
  std::string configuration = "skip";
  std::string gate_tanh = "reference";
  std::string gate_init = "normal";
  // memorizing
  int64_t memory_layer = 9;
  int64_t memory_size = 32768;
  int64_t neighbors = 32;
};

template <class V>
void describe(V& v, TimeConfig& c) {
  v.field("kind", c.kind, "what a level sees of the past; none = every earlier token",
          one_of(time_kind_names()));
  v.field("window", c.window, "W: tokens seen back, and the block of the recurrence",
          between(1, 1 << 24));
  v.field("segment", c.segment, "N: tokens per training segment", between(1, 1 << 24));
  v.field("attend_self", c.attend_self, "a token also sees itself");
  v.field("mask_empty_cache", c.mask_empty_cache,
          "hide the empty cache at a document's start instead of attending to zeros");
  v.renamed("normalise", "normalize");
  v.field("normalize", c.normalize,
          "queries and keys have unit length; false: as projected, still times the learned scale "
          "(no 1/sqrt(d))");
  v.field("states", c.states, "S: recurrent state vectors", between(1, 1 << 20));
  v.field("state_ids", c.state_ids, "a learned vector tells each state from the others");
  v.field("recurrent_layers", c.recurrent_layers, "layers with recurrence, counted from 1",
          between(1, kMaxLevels));
  v.field("gate", c.gate, "gate of the state", one_of({"fixed", "lstm"}));
  v.field("configuration", c.configuration, "where the state is gated",
          one_of({"dual", "single", "skip"}));
  v.field("gate_tanh", c.gate_tanh, "tanh as the authors' program or as the paper's text has it",
          one_of({"reference", "paper"}));
  v.field("gate_init", c.gate_init,
          "initial gate biases: normal(0, 0.1), or the 0 and 1 that the paper warns of",
          one_of({"normal", "zero", "one"}));
  v.field("memory_layer", c.memory_layer, "memorizing: the layer with the memory, from 1",
          between(1, kMaxLevels));
  v.field("memory_size", c.memory_size, "memorizing: pairs kept per head", between(1, 1 << 30));
  v.renamed("neighbours", "neighbors");
  v.field("neighbors", c.neighbors, "memorizing: pairs retrieved per query", between(1, 1 << 20));
}

}  // namespace rondo
