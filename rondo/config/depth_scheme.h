// Schemes for sharing weights over depth. A scheme is one file (scheme_*.cpp) with a function that
// returns its entry, and one line of the table in depth_scheme.cpp. The entry contains everything
// specific to the scheme; weights, state, cost and decoding follow from its plan.
#pragma once

#include "rondo/base/registry.h"
#include "rondo/config/config_check.h"
#include "rondo/config/depth_plan.h"

namespace rondo {

// Properties of the surrounding network that a scheme may check.
struct DepthUse {
  std::vector<int64_t> tokens;  // of each stage; empty: variable length
  bool adds_positions = false;  // the network adds an optional position encoding
};

struct DepthScheme {
  std::string name;  // model.depth.scheme
  // The list of levels; `stage` selects the entry of per-stage settings.
  DepthPlan (*plan)(const DepthConfig& config, const PlanShape& shape, int64_t stage) = nullptr;
  // Additional checks beyond the flags below; null: none.
  void (*check)(const DepthConfig& config, const DepthUse& use, const ConfigCheck& check) = nullptr;
  // Sets how often blocks are applied (--loops); null: the levels are all distinct.
  void (*set_loops)(DepthConfig& config, int64_t loops) = nullptr;
  // That number; null as above.
  int64_t (*loops)(const DepthConfig& config) = nullptr;
  // Where the scheme is supported besides attention stacks of uniform width.
  bool in_pyramid = false;         // stages of different widths
  bool without_attention = false;  // tokens are mixed by a feed-forward
  bool with_mixed_depth = false;   // a second pass that applies every block once
};

Registry<DepthScheme>& depth_schemes();

// How often a network applies its blocks (recursive; of its first stage), or its levels (ring,
// universal); 0 if its levels are all distinct.
int64_t loops_of(const DepthConfig& config);

// The name in the trained network of the weights called `name` in one with plan `now`, which
// applies the same blocks another number of times. With fewer loops, the weights of the first loops
// are used; only the numbers of projections depend on that.
std::string name_in_training(const std::string& name, const DepthPlan& now,
                             const DepthPlan& trained);

// Built-in schemes, one file each.
DepthScheme vanilla_scheme();
DepthScheme universal_scheme();
DepthScheme one_wide_scheme();
DepthScheme ring_scheme();
DepthScheme recursive_scheme();

}  // namespace rondo
