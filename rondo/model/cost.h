// The cost of a model: parameters by part, shared and per level, and multiply-adds of one example.
// Nothing is estimated: the network is built on the meta device and its forward pass traced.
#pragma once

#include "rondo/model/network.h"

namespace rondo {

// What counts as an operation. `norms`: the SReT paper's rule, 5 more per normalized element.
// `authors`: the RingFormer authors' rule, used for the numbers in their Section 4.2: in addition
// to these 5, 6 per GELU element and 1 per element of an addition or of scaling attention scores.
// Their code forms the matrix M = A Bᵀ of every signal: that is counted, and 1 per element of M,
// instead of our two thin matmuls.
enum class CountRule { macs, norms, authors };

// `name`: "macs", "norms" or "authors".
CountRule count_rule(const std::string& name);

// Operations of one example; shared weights count every time they are applied.
struct Work {
  double multiply_adds = 0;
  double normalized = 0;   // elements that pass through a norm
  double gelu = 0;         // elements that pass through a GELU
  double elementwise = 0;  // elements of additions and of scaling attention scores
  double forming = 0;      // extra cost of forming the signals' matrices over thin matmuls

  // SReT's rule: plus five operations per normalized element.
  double with_norms() const { return multiply_adds + 5.0 * normalized; }
  double by(CountRule rule) const;
  Work& operator+=(const Work& other);
};

struct CostPart : Work {
  std::string name;        // "encoder.feed_forward", "head", ...
  int64_t parameters = 0;  // each weight counts once
  int64_t shared = 0;      // of these, in weights used by several levels
};

struct Cost : Work {
  int64_t parameters = 0;
  int64_t without_embeddings = 0;  // and without the head
  int64_t shared = 0;              // in weights used by several levels
  int64_t per_level = 0;           // in weights used by one level
  std::vector<CostPart> parts;
};

// `tokens`: sequence length of the example; 0 = the model's default.
Cost measure_cost(const ModelConfig& config, int64_t tokens = 0);

}  // namespace rondo
