// RingFormer (level signals): one block applied at every level; each level owns its norms and
// low-rank maps g_i(x) = (x downᵀ) up that adjust queries, keys, values and the feed-forward input.
#pragma once

#include "rondo/config/depth_config.h"
#include "rondo/nn/attention.h"

namespace rondo {

// Where a signal g(x) is added to a map of u: W u + g(x), or W (u + g(x)).
enum class SignalPlace { after, before };

// A shared map plus a level's signal.
class SignalledMap : public nn::LinearHook {
 public:
  SignalledMap(std::shared_ptr<nn::LowRank> signal, SignalPlace place)
      : signal_(std::move(signal)), place_(place) {}
  Tensor forward(const nn::Linear& map, const Tensor& u, const Tensor& x,
                 const Scope& scope) const override;
  nn::LinearMap as_map(const nn::Linear& map, const Tensor& u, const Tensor& x,
                       const Scope& scope) const override;

  // Map and signal as one matrix, for inference where u is x.
  std::shared_ptr<nn::Linear> fold(const nn::Linear& map) const;

  const nn::LowRank& signal() const { return *signal_; }

 private:
  std::shared_ptr<nn::LowRank> signal_;
  SignalPlace place_;
};

// A level's signals for decoding, separate from the maps they are added to: the maps are shared by
// all levels and stay in cache, while folded maps would differ per level.
struct CompiledSignals {
  nn::CompiledLowRank query, key, value, feed_forward;
  SignalPlace place = SignalPlace::after;
  bool inner_feed_forward = false;  // added before the activation, not to the feed-forward input
};

// The signals of one level. Absent ones (ablations) are null.
class LevelSignals : public nn::Module {
 public:
  LevelSignals(const RingConfig& config, int64_t width, int64_t inner, int64_t hidden);

  CompiledSignals compile(nn::WeightPacker& packer) const;

  // For the attention projections.
  nn::ProjectionHooks projections() const;
  // x + g_F(x), the feed-forward input (x if the signal is added elsewhere or absent).
  Tensor feed_forward_input(const Tensor& x, const Scope& scope) const;
  // g_F(x) of width F, added after the up-projection (ablation inter-ffn); undefined otherwise.
  Tensor feed_forward_inner(const Tensor& x, const Scope& scope) const;

  // Inference in post-norm networks, where signal and map have the same input: W + A Bᵀ for every
  // map with a signal. The level then costs as much as one without signals.
  struct Folded {
    std::shared_ptr<nn::Linear> query, key, value, up;  // null where there is no signal
  };
  Folded fold(const nn::Projections& projections, const nn::FeedForward* feed_forward) const;

 private:
  SignalPlace place_ = SignalPlace::after;
  bool inner_feed_forward_ = false;
  std::unique_ptr<SignalledMap> query_, key_, value_, feed_forward_;
};

}  // namespace rondo
