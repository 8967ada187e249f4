// RingFormer: level signals.
#include "rondo/recurrence/ring.h"

#include "rondo/nn/kernel_choice.h"

namespace rondo {
namespace {

// Whether W x + g(x) is cheaper as one matmul with W + G, forming G for this call: with many tokens
// the cost of forming G is negligible (measured: from twice the width on), also in the backward
// pass.
bool worth_merging(const nn::Linear& map, const Tensor& u, const Tensor& x, const Scope& scope) {
  const Tensor& weight = map.weight();
  return nn::kernels_in_use() == nn::Kernels::fused && u.is_same(x) && !x.is_meta() &&
         !scope.watched() && weight.dim() == 2 && weight.scalar_type() == x.scalar_type() &&
         x.numel() >= 2 * weight.size(1) * weight.size(1);
}

}  // namespace

Tensor SignalledMap::forward(const nn::Linear& map, const Tensor& u, const Tensor& x,
                             const Scope& scope) const {
  if (place_ == SignalPlace::after && worth_merging(map, u, x, scope)) {
    return nn::linear(x, signal_->added_to(map.map()), scope, nn::Result::branch);
  }
  const Tensor g = signal_->forward(x, scope / "signal");
  const Scope signal = scope / "signal";
  signal.elementwise(g);
  signal.record("added", g);
  if (place_ == SignalPlace::before) {
    signal.record("joined", u);
    return map.forward(u + g, scope);
  }
  const Tensor y = map.forward(u, scope);
  signal.record("joined", y);
  return y + g;
}

nn::LinearMap SignalledMap::as_map(const nn::Linear& map, const Tensor& u, const Tensor& x,
                                   const Scope& scope) const {
  if (place_ != SignalPlace::after || !worth_merging(map, u, x, scope)) return {};
  return signal_->added_to(map.map());
}

// W + G if the signal is added after the map, W + W G if before it.
std::shared_ptr<nn::Linear> SignalledMap::fold(const nn::Linear& map) const {
  const at::NoGradGuard no_grad;
  const Tensor g = signal_->matrix();  // [out, in]
  const Tensor& w = map.weight();
  const Tensor sum = w + (place_ == SignalPlace::after ? g : at::matmul(w, g));
  return std::make_shared<nn::Linear>(sum.detach(), map.bias());
}

LevelSignals::LevelSignals(const RingConfig& config, int64_t width, int64_t inner, int64_t hidden) {
  const auto map = [&](const char* name, int64_t out, int64_t rank, SignalPlace place) {
    const int64_t used = config.full_rank ? 0 : rank;
    return std::make_unique<SignalledMap>(
        register_module(name, std::make_shared<nn::LowRank>(width, out, used)), place);
  };
  const int64_t rank = config.rank_for(width);
  if (config.attention != "none") {
    place_ = config.attention == "before" ? SignalPlace::before : SignalPlace::after;
    const int64_t out = place_ == SignalPlace::before ? width : inner;
    query_ = map("query", out, rank, place_);
    key_ = map("key", out, rank, place_);
    value_ = map("value", out, rank, place_);
  }
  if (config.feed_forward != "none") {
    inner_feed_forward_ = config.feed_forward == "inter";
    feed_forward_ = map("feed_forward", inner_feed_forward_ ? hidden : width,
                        config.feed_forward_rank_for(width),
                        inner_feed_forward_ ? SignalPlace::after : SignalPlace::before);
  }
}

CompiledSignals LevelSignals::compile(nn::WeightPacker& packer) const {
  const auto compiled = [&](const std::unique_ptr<SignalledMap>& map) {
    return map != nullptr ? map->signal().compile(packer) : nn::CompiledLowRank();
  };
  return {compiled(query_),        compiled(key_), compiled(value_),
          compiled(feed_forward_), place_,         inner_feed_forward_};
}

nn::ProjectionHooks LevelSignals::projections() const {
  return {query_.get(), key_.get(), value_.get()};
}

Tensor LevelSignals::feed_forward_input(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || inner_feed_forward_) return x;
  return feed_forward_->signal().join(x, scope);
}

Tensor LevelSignals::feed_forward_inner(const Tensor& x, const Scope& scope) const {
  if (feed_forward_ == nullptr || !inner_feed_forward_) return {};
  return feed_forward_->signal().forward(x, scope);
}

LevelSignals::Folded LevelSignals::fold(const nn::Projections& projections,
                                        const nn::FeedForward* feed_forward) const {
  Folded folded;
  if (query_ != nullptr) {
    folded.query = query_->fold(projections.query_map());
    folded.key = key_->fold(projections.key_map());
    folded.value = value_->fold(projections.value_map());
  }
  if (feed_forward_ != nullptr && feed_forward != nullptr) {
    folded.up = feed_forward_->fold(feed_forward->up());
  }
  return folded;
}

}  // namespace rondo
