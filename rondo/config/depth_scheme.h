// The schemes of sharing weights over depth. A scheme is one file (scheme_*.cpp) with a function
// that returns its entry, and one line of the table in depth_scheme.cpp; the entry holds all that
// is the scheme's own. Weights, state, cost and decoding follow from its plan.
#pragma once

#include "rondo/base/registry.h"
#include "rondo/config/config_check.h"
#include "rondo/config/depth_plan.h"

namespace rondo {

// What a scheme may want to know of the network around it.
struct DepthUse {
  std::vector<int64_t> tokens;  // of every stage; empty: lengths vary
  bool adds_positions = false;  // the network adds a position code, which could be left out
};

struct DepthScheme {
  std::string name;  // model.depth.scheme
  // The list of levels; `stage` picks the entry where the configuration has one per stage.
  DepthPlan (*plan)(const DepthConfig& config, const PlanShape& shape, int64_t stage) = nullptr;
  // Checks of its own, beyond what the flags below say; null: none.
  void (*check)(const DepthConfig& config, const DepthUse& use, const ConfigCheck& check) = nullptr;
  // Makes a configuration apply its blocks so many times (--loops); null: levels are all different.
  void (*set_loops)(DepthConfig& config, int64_t loops) = nullptr;
  // Where it has a meaning beside stacks of attention of one width.
  bool in_pyramid = false;         // stages of different widths
  bool without_attention = false;  // tokens mix by a feed-forward
  bool with_mixed_depth = false;   // a second pass that applies every block once
};

Registry<DepthScheme>& depth_schemes();

// Rondo's own, one file each.
DepthScheme vanilla_scheme();
DepthScheme universal_scheme();
DepthScheme one_wide_scheme();
DepthScheme ring_scheme();
DepthScheme recursive_scheme();

}  // namespace rondo
