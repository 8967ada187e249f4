// RingFormer: the plan and a level's signals.
#include "rondo/recurrence/ring.h"

#include "rondo/recurrence/schemes.h"

namespace rondo {
namespace {

// W + M when the signal joins after the map, W + W M when before it.
std::shared_ptr<nn::Linear> fold_map(const nn::Linear& map, const nn::LowRank& signal,
                                     nn::SignalPlace place) {
  const Tensor m = signal.matrix();  // [out, in]
  const bool after = place == nn::SignalPlace::after;
  const Tensor& w = map.weight();
  return std::make_shared<nn::Linear>((w + (after ? m : at::matmul(w, m))).detach(), map.bias());
}

}  // namespace

DepthPlan ring_plan(const DepthConfig& config, const PlanShape& shape, int64_t /*stage*/) {
  DepthPlan plan;
  plan.norm_epsilon = 1e-5;  // the authors' other networks say 1e-6, these are left at torch's own
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
  const auto map = [&](const char* name, int64_t out, int64_t rank) {
    return register_module(name,
                           std::make_shared<nn::LowRank>(width, out, config.full_rank ? 0 : rank));
  };
  const int64_t rank = config.rank_for(width);
  if (config.attention != "none") {
    place_ = config.attention == "before" ? nn::SignalPlace::before : nn::SignalPlace::after;
    const int64_t out = place_ == nn::SignalPlace::before ? width : inner;
    query_ = map("query", out, rank);
    key_ = map("key", out, rank);
    value_ = map("value", out, rank);
  }
  if (config.feed_forward != "none") {
    inner_feed_forward_ = config.feed_forward == "inter";
    feed_forward_ = map("feed_forward", inner_feed_forward_ ? hidden : width,
                        config.feed_forward_rank_for(width));
  }
}

CompiledSignals LevelSignals::compile(nn::WeightPacker& packer) const {
  const auto compiled = [&](const std::shared_ptr<nn::LowRank>& signal) {
    return signal != nullptr ? signal->compile(packer) : nn::CompiledLowRank();
  };
  return {compiled(query_),        compiled(key_), compiled(value_),
          compiled(feed_forward_), place_,         inner_feed_forward_};
}

nn::ProjectionSignals LevelSignals::projections() const {
  return {query_.get(), key_.get(), value_.get(), place_};
}

Tensor LevelSignals::feed_forward_input(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || inner_feed_forward_) return x;
  return feed_forward_->join(x, scope);
}

Tensor LevelSignals::feed_forward_inner(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || !inner_feed_forward_) return {};
  return feed_forward_->forward(x, scope);
}

LevelSignals::Folded LevelSignals::fold(const nn::Projections& projections,
                                        const nn::FeedForward* feed_forward) const {
  const at::NoGradGuard no_grad;
  Folded folded;
  if (query_ != nullptr) {
    folded.query = fold_map(projections.query_map(), *query_, place_);
    folded.key = fold_map(projections.key_map(), *key_, place_);
    folded.value = fold_map(projections.value_map(), *value_, place_);
  }
  if (feed_forward_ != nullptr && feed_forward != nullptr) {
    folded.up = fold_map(feed_forward->up(), *feed_forward_,
                         inner_feed_forward_ ? nn::SignalPlace::after : nn::SignalPlace::before);
  }
  return folded;
}

}  // namespace rondo
