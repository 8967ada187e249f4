// A made-up kind of time, an example in docs/adding_a_variant.md, which quotes this file: a level
// sees the mean of the values of all tokens so far. tests/infer/adding_a_variant_test.cpp registers
// it, trains it and generates with it.
#pragma once

#include "rondo/recurrence/time_mixing.h"

namespace rondo::example {

// ---- training

class RunningMean : public TokenMixing {
 public:
  explicit RunningMean(const LanguageModelConfig& config);
  Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) override;
  void describe_state(int64_t level, const StatePlace& place, StateLayout& layout) const override;
  std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const override;

 private:
  int64_t heads_, head_width_;
  std::shared_ptr<nn::Linear> value_, output_;
};

inline RunningMean::RunningMean(const LanguageModelConfig& config)
    : heads_(config.heads), head_width_(config.head_width) {
  const int64_t inner = heads_ * head_width_;
  const auto map = [&](const char* name, int64_t in, int64_t out) {
    return register_module(
        name, std::make_shared<nn::Linear>(in, out, /*bias=*/false, nn::fan_in_init(in)));
  };
  value_ = map("value", config.width, inner);
  output_ = map("output", inner, config.width);
}

inline Tensor RunningMean::forward(const MixingInput& in, ForwardContext& context,
                                   const Scope& scope) {
  const Tensor v = value_->forward(in.u, scope / "value");  // [B, T, H·d]
  if (v.is_meta()) return output_->forward(v, scope / "output");
  const std::string key = level_key(in.level, "sum");
  const Tensor before = context.state->get(key);  // [B, H·d]; undefined in the first call
  Tensor sums = v.cumsum(1);                      // [B, T, H·d]
  if (before.defined()) sums = sums + before.unsqueeze(1);
  context.state->set(key, sums.select(1, sums.size(1) - 1));
  const Tensor mean = sums / (context.positions + 1).unsqueeze(-1);
  scope.record("mean", mean);
  return output_->forward(mean, scope / "output");
}

inline void RunningMean::describe_state(int64_t level, const StatePlace& place,
                                        StateLayout& layout) const {
  StateEntry sum;
  sum.type = place.type;
  sum.shape = {place.rows(), heads_ * head_width_};
  layout.add(level_key(level, "sum"), sum);
}

// ---- inference

struct SumCache : RowCache {
  std::unique_ptr<RowCache> clone() const override { return std::make_unique<SumCache>(*this); }
  int64_t bytes() const override { return static_cast<int64_t>(sum.size() * sizeof(float)); }

  std::vector<float> sum;  // [H·d]
};

class CompiledRunningMean : public CompiledMixing {
 public:
  explicit CompiledRunningMean(const nn::CompiledProjections& maps) { maps_ = maps; }

  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t /*tokens_seen*/) const override {
    auto cache = std::make_unique<SumCache>();
    cache->sum.resize(static_cast<size_t>(maps_.heads * maps_.head_width));
    const Tensor kept = state.get(level_key(level, "sum"));  // [1, H·d]
    if (kept.defined()) {
      const Tensor sum = kept.to(at::kFloat).contiguous();
      std::copy_n(sum.data_ptr<float>(), sum.numel(), cache->sum.begin());
    }
    return cache;
  }

  void save(const RowCache& cache, int64_t level, int64_t /*tokens_seen*/,
            State& state) const override {
    state.set(level_key(level, "sum"),
              at::tensor(static_cast<const SumCache&>(cache).sum).unsqueeze(0));
  }

  void attend(const HeadStep& step, RowCache& cache) const override {
    const int64_t d = maps_.head_width;
    float* sum = static_cast<SumCache&>(cache).sum.data() + step.head * d;
    for (int64_t i = 0; i < d; ++i) {
      sum[i] += step.v[i];
      step.out[i] = sum[i] / static_cast<float>(step.tokens_seen + 1);
    }
  }
};

inline std::shared_ptr<const CompiledMixing> RunningMean::compile(nn::WeightPacker& packer) const {
  nn::CompiledProjections maps;  // without queries and keys
  maps.value = value_->compile(packer);
  maps.output = output_->compile(packer);
  maps.heads = heads_;
  maps.head_width = head_width_;
  return std::make_shared<CompiledRunningMean>(maps);
}

// ---- the two entries

inline void check_running_mean(const LanguageModelConfig& config, int64_t /*levels*/,
                               const ConfigCheck& check) {
  check.require(config.depth.scheme != "ring" || config.depth.ring.attention == "none",
                "model.depth.ring.attention: a running mean has no queries and keys for signals",
                "set model.depth.ring.attention = \"none\"");
}

inline TimeKind running_mean_kind() {
  TimeKind kind;
  kind.name = "running-mean";
  kind.check = check_running_mean;
  return kind;
}

inline std::shared_ptr<TokenMixing> make_running_mean(const LanguageModelConfig& config,
                                                      int64_t /*level*/) {
  return std::make_shared<RunningMean>(config);
}

}  // namespace rondo::example
