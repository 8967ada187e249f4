// Universal Transformer (Dehghani et al. 2019) as a scheme: one block, including its norms, applied
// at every level. Before each level, a static table of position and level is added to the residual
// stream (rondo/recurrence/universal.h).
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

DepthPlan universal_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  DepthPlan plan;
  for (int64_t i = 0; i < config.levels; ++i) {
    Level level;
    level.mixing = 0;
    level.cross = shape.cross ? 0 : kNone;
    level.feed_forward = shape.feed_forward ? 0 : kNone;
    level.static_signal = i + 1;
    level.loop = i;
    borrow_norms(level, shape, 0);
    plan.levels.push_back(level);
  }
  return plan;
}

void check_universal(const DepthConfig& /*config*/, const DepthUse& use, const ConfigCheck& check) {
  check.require(!use.adds_positions,
                "model.positions: universal levels add their own position encoding",
                "set model.positions = \"none\"");
}

}  // namespace

DepthScheme universal_scheme() {
  DepthScheme scheme;
  scheme.name = "universal";
  scheme.plan = universal_plan;
  scheme.check = check_universal;
  scheme.set_loops = [](DepthConfig& config, int64_t loops) { config.levels = loops; };
  scheme.loops = [](const DepthConfig& config) { return config.levels; };
  return scheme;
}

}  // namespace rondo
