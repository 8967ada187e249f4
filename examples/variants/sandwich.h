// A made-up depth scheme, an example in docs/adding_a_variant.md, which quotes this file: the first
// and last levels own their blocks, all levels in between share one; every level owns its norms.
#pragma once

#include <fmt/format.h>

#include "rondo/config/depth_scheme.h"

namespace rondo::example {

inline DepthPlan sandwich_plan(const DepthConfig& config, const PlanShape& shape,
                               int64_t /*stage*/) {
  DepthPlan plan;
  for (int64_t i = 0; i < config.levels; ++i) {
    const int64_t block = i == 0 ? 0 : (i == config.levels - 1 ? 2 : 1);
    Level level;
    level.mixing = block;
    level.cross = shape.cross ? block : kNone;
    level.feed_forward = shape.feed_forward ? block : kNone;
    level.loop = block == 1 ? i - 1 : 0;
    borrow_norms(level, shape, i);
    plan.levels.push_back(level);
  }
  return plan;
}

inline void check_sandwich(const DepthConfig& config, const DepthUse& /*use*/,
                           const ConfigCheck& check) {
  check.require(
      config.levels >= 3,
      fmt::format("model.depth.levels: a sandwich has at least 3 levels, got {}", config.levels),
      "choose more levels, or another scheme");
}

inline DepthScheme sandwich_scheme() {
  DepthScheme scheme;
  scheme.name = "sandwich";
  scheme.plan = sandwich_plan;
  scheme.check = check_sandwich;
  scheme.set_loops = [](DepthConfig& config, int64_t loops) { config.levels = loops + 2; };
  return scheme;
}

}  // namespace rondo::example
