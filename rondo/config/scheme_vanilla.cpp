// The standard transformer as a scheme: every level has its own weights.
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

DepthPlan vanilla_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  DepthPlan plan;
  for (int64_t i = 0; i < config.levels; ++i) {
    Level level;
    level.mixing = i;
    level.cross = shape.cross ? i : kNone;
    level.feed_forward = shape.feed_forward ? i : kNone;
    borrow_norms(level, shape, i);
    plan.levels.push_back(level);
  }
  return plan;
}

}  // namespace

DepthScheme vanilla_scheme() {
  DepthScheme scheme;
  scheme.name = "vanilla";
  scheme.plan = vanilla_plan;
  scheme.in_pyramid = true;
  scheme.without_attention = true;
  return scheme;
}

}  // namespace rondo
