// RingFormer: the plan and a level's signals.
#include "rondo/recurrence/ring.h"

#include "rondo/recurrence/schemes.h"

namespace rondo {

DepthPlan ring_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  DepthPlan plan;
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

LevelSignals::LevelSignals(const RingConfig& config, int64_t width, int64_t inner, int64_t hidden) {
  const int64_t rank = config.full_rank ? 0 : config.rank_for(width);
  const auto map = [&](const char* name, int64_t out) {
    return register_module(name, std::make_shared<nn::LowRank>(width, out, rank));
  };
  if (config.attention != "none") {
    place_ = config.attention == "before" ? nn::SignalPlace::before : nn::SignalPlace::after;
    const int64_t out = place_ == nn::SignalPlace::before ? width : inner;
    query_ = map("query", out);
    key_ = map("key", out);
    value_ = map("value", out);
  }
  if (config.feed_forward != "none") {
    inner_feed_forward_ = config.feed_forward == "inter";
    feed_forward_ = map("feed_forward", inner_feed_forward_ ? hidden : width);
  }
}

nn::ProjectionSignals LevelSignals::projections() const {
  return {query_.get(), key_.get(), value_.get(), place_};
}

Tensor LevelSignals::feed_forward_input(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || inner_feed_forward_) return x;
  return x + feed_forward_->forward(x, scope);
}

Tensor LevelSignals::feed_forward_inner(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || !inner_feed_forward_) return {};
  return feed_forward_->forward(x, scope);
}

}  // namespace rondo
