// RingFormer as a scheme: one block applied at every level; each level has its own norms and level
// signals (rondo/recurrence/ring.h).
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

DepthPlan ring_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  DepthPlan plan;
  plan.norm_epsilon = 1e-5;  // torch's default; the authors' other networks set 1e-6
  for (int64_t i = 0; i < config.levels; ++i) {
    Level level;
    level.mixing = 0;
    level.cross = shape.cross ? 0 : kNone;
    level.feed_forward = shape.feed_forward ? 0 : kNone;
    level.signal = i;
    level.loop = i;
    borrow_norms(level, shape, i);
    plan.levels.push_back(level);
  }
  return plan;
}

}  // namespace

DepthScheme ring_scheme() {
  DepthScheme scheme;
  scheme.name = "ring";
  scheme.plan = ring_plan;
  scheme.set_loops = [](DepthConfig& config, int64_t loops) { config.levels = loops; };
  scheme.loops = [](const DepthConfig& config) { return config.levels; };
  return scheme;
}

}  // namespace rondo
