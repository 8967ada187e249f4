// How a level sees the past: [model.time]. Torch-free.
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
  v.field("kind", c.kind, "how a level sees the past; none = full attention to every earlier token",
          one_of(time_kind_names()));
  v.field("window", c.window, "W: attention window in tokens, and block size of the recurrence",
          between(1, 1 << 24));
  v.field("segment", c.segment, "N: tokens per training segment", between(1, 1 << 24));
  v.field("attend_self", c.attend_self, "a token also attends to itself");
  v.field("mask_empty_cache", c.mask_empty_cache,
          "mask the empty cache at the start of a document instead of attending to zeros");
  v.renamed("normalise", "normalize");
  v.field("normalize", c.normalize,
          "normalize queries and keys to unit length; false: use them as projected; both apply the "
          "learned scale instead of 1/sqrt(d)");
  v.field("states", c.states, "S: number of recurrent state vectors", between(1, 1 << 20));
  v.field("state_ids", c.state_ids, "add a learned embedding that identifies each state vector");
  v.field("recurrent_layers", c.recurrent_layers, "layers with recurrence, counted from 1",
          between(1, kMaxLevels));
  v.field("gate", c.gate, "kind of state gate", one_of({"fixed", "lstm"}));
  v.field("configuration", c.configuration, "where the state is gated",
          one_of({"dual", "single", "skip"}));
  v.field("gate_tanh", c.gate_tanh, "use of tanh, as in the authors' code or as in the paper",
          one_of({"reference", "paper"}));
  v.field("gate_init", c.gate_init,
          "initial gate biases: normal(0, 0.1), or the constants 0 and 1 that the paper advises "
          "against",
          one_of({"normal", "zero", "one"}));
  v.field("memory_layer", c.memory_layer, "memorizing: the layer with the memory, counted from 1",
          between(1, kMaxLevels));
  v.field("memory_size", c.memory_size, "memorizing: key-value pairs kept per head",
          between(1, 1 << 30));
  v.renamed("neighbours", "neighbors");
  v.field("neighbors", c.neighbors, "memorizing: key-value pairs retrieved per query",
          between(1, 1 << 20));
}

}  // namespace rondo
