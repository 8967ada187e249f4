// What a model costs: parameters, by part, shared and per level, and multiply-adds of one example.
// Nothing is estimated: the network is built without memory and its forward pass walked through.
#pragma once

#include "rondo/model/network.h"

namespace rondo {

// What counts as an operation. `norms`: the SReT paper's rule, 5 more per normalized element.
// `authors`: the RingFormer authors' rule, under which the figures of their Section 4.2 were
// counted: besides these 5, 6 per element of a GELU and 1 per element added to another or, as
// attention scores are, divided. Their program forms the matrix M = A Bᵀ of every signal: that is
// counted, and 1 per element of M, in place of our two thin products.
enum class CountRule { macs, norms, authors };

// One of "macs", "norms", "authors".
CountRule count_rule(const std::string& name);

// Of one example; everything counts every time it is applied.
struct Work {
  double multiply_adds = 0;
  double normalized = 0;   // elements that pass through a norm
  double gelu = 0;         // elements that pass through a GELU
  double elementwise = 0;  // elements added to others, or scaled as scores
  double forming = 0;      // what forming the signals' matrices costs more than thin products do

  // SReT's rule: five operations per normalized element on top.
  double with_norms() const { return multiply_adds + 5.0 * normalized; }
  double by(CountRule rule) const;
  Work& operator+=(const Work& other);
};

struct CostPart : Work {
  std::string name;        // "encoder.feed_forward", "head", ...
  int64_t parameters = 0;  // each weight once
  int64_t shared = 0;      // of them, in weights that several levels use
};

struct Cost : Work {
  int64_t parameters = 0;
  int64_t without_embeddings = 0;  // nor head
  int64_t shared = 0;              // in weights that several levels use
  int64_t per_level = 0;           // in weights that one level uses
  std::vector<CostPart> parts;
};

// `tokens`: length of the sequence counted, 0 = the model's usual one.
Cost measure_cost(const ModelConfig& config, int64_t tokens = 0);

}  // namespace rondo
