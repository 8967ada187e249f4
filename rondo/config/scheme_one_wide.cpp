// One Wide Feed-forward (Pires et al. 2023) as a scheme: separate attention and attention norms per
// level, one feed-forward with one norm for all levels. A decoder has no feed-forward, and one norm
// per level, used after both of its attentions.
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

DepthPlan one_wide_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  const bool shared_feed_forward = shape.feed_forward && !shape.cross;
  DepthPlan plan;
  for (int64_t i = 0; i < config.levels; ++i) {
    Level level;
    level.mixing = i;
    level.cross = shape.cross ? i : kNone;
    level.feed_forward = shared_feed_forward ? 0 : kNone;
    // Norm 0 belongs to the shared feed-forward, if there is one.
    level.feed_forward_norm = shared_feed_forward ? 0 : kNone;
    level.mixing_norm = i + (shared_feed_forward ? 1 : 0);
    level.cross_norm = shape.cross ? level.mixing_norm : kNone;
    plan.levels.push_back(level);
  }
  return plan;
}

}  // namespace

DepthScheme one_wide_scheme() {
  DepthScheme scheme;
  scheme.name = "one-wide";
  scheme.plan = one_wide_plan;
  return scheme;
}

}  // namespace rondo
