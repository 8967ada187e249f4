// Whole-sequence token mixing.
#include "rondo/recurrence/self_attention.h"

#include "rondo/base/error.h"

#include <cmath>

namespace rondo {
namespace {

double inverse_root(int64_t head_width) { return 1.0 / std::sqrt(static_cast<double>(head_width)); }

// Query t of the last T of K tokens sees key j iff j <= K - T + t. [T, K]
Tensor causal_visible(int64_t queries, int64_t keys, at::Device device) {
  return at::ones({queries, keys}, at::TensorOptions(at::kBool).device(device))
      .tril(keys - queries);
}

}  // namespace

std::string level_key(int64_t level, const char* name) {
  return "level." + std::to_string(level) + "." + name;
}

void TokenMixing::reset_state(int64_t level, const Tensor& fresh, State& state) const {
  const std::string prefix = level_key(level, "");
  const State before = state;
  for (const auto& [name, tensor] : before.tensors()) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    state.set(name, start_rows(fresh, at::zeros({}, tensor.options()), tensor));
  }
}

StateKeys TokenMixing::read_states(int64_t /*level*/, int64_t /*rows*/,
                                   const ForwardContext& /*context*/,
                                   const Scope& /*scope*/) const {
  RONDO_ASSERT(state_readers() == StateReaders::none);
  return {};
}

SelfAttention::SelfAttention(const SelfAttentionOptions& options) : options_(options) {
  projections_ = register_module("projections", std::make_shared<nn::Projections>(options.shape));
}

void SelfAttention::extend(Tensor& k, Tensor& v, int64_t level, State& state) {
  const std::string keys = level_key(level, "keys");
  const std::string values = level_key(level, "values");
  if (state.has(keys)) {
    k = at::cat({state.get(keys), k.transpose(1, 2)}, 1).transpose(1, 2);
    v = at::cat({state.get(values), v.transpose(1, 2)}, 1).transpose(1, 2);
  }
  state.set(keys, k.transpose(1, 2));  // kept as [B, T, H, d]
  state.set(values, v.transpose(1, 2));
}

Tensor SelfAttention::forward(const MixingInput& in, ForwardContext& context, const Scope& scope) {
  const SlicePlan slice = slice_plan(options_.permutation, in.loop, in.groups);
  Tensor u = in.u;
  Tensor x = in.x;
  Tensor permutation;
  if (slice.permute) {
    permutation = context.permutations->next(u.size(1));
    scope.record("permutation", permutation);
    u = permute_tokens(u, permutation);
    if (in.hooks.query != nullptr) x = permute_tokens(x, permutation);
  }
  auto [q, k, v, unused] = projections_->heads_of(u, x, in.hooks, scope);  // [B, H, T, d]
  const double factor = inverse_root(options_.shape.head_width);
  if (context.state != nullptr) extend(k, v, in.level, *context.state);

  nn::AttendOptions how;
  how.factor = factor;
  how.mask = context.mask;
  if (options_.causal && q.size(2) > 1) {  // a single query sees all keys
    const Tensor causal = causal_visible(q.size(2), k.size(2), q.device());
    how.mask = context.mask.defined() ? context.mask.logical_and(causal) : causal;
  }
  Tensor y = nn::attend(slice_groups(q, in.groups), slice_groups(k, in.groups),
                        slice_groups(v, in.groups), how, is_training(), scope);
  y = nn::merge_heads(join_groups(y, in.groups));  // [B, T, H·d]
  if (slice.invert && permutation.defined()) y = permute_tokens(y, invert(permutation));
  return projections_->output(y, scope);
}

CrossAttention::CrossAttention(const nn::AttentionShape& shape) : shape_(shape) {
  projections_ = register_module("projections", std::make_shared<nn::Projections>(shape));
}

Tensor CrossAttention::forward(const Tensor& u, int64_t index, ForwardContext& context,
                               const Scope& scope) {
  const std::string prefix = "cross." + std::to_string(index);
  Tensor k = context.state->get(prefix + ".keys");  // [B, H, S, d]
  Tensor v = context.state->get(prefix + ".values");
  if (!k.defined()) {
    const auto made = projections_->keys_and_values(context.memory, scope);
    k = made.k;
    v = made.v;
    context.state->set(prefix + ".keys", k);
    context.state->set(prefix + ".values", v);
  }
  nn::AttendOptions how;
  how.factor = inverse_root(shape_.head_width);
  how.mask = context.memory_mask;
  const Tensor q = projections_->query(u, u, {}, scope);  // [B, H, T, d]
  return projections_->output(nn::merge_heads(nn::attend(q, k, v, how, is_training(), scope)),
                              scope);
}

std::vector<std::shared_ptr<const CrossMemory>> CrossAttention::memories(
    const Tensor& memory, const std::vector<int64_t>& lengths) const {
  const auto made = projections_->keys_and_values(memory, Scope());
  // [2, B, S, H, d]: one tensor holds both keys and values.
  const Tensor both = at::stack({made.k.transpose(1, 2), made.v.transpose(1, 2)}).contiguous();
  std::vector<std::shared_ptr<const CrossMemory>> rows;
  for (size_t b = 0; b < lengths.size(); ++b) {
    CrossMemory m;
    m.kept = both;
    m.heads.keys = both.data_ptr<float>() + static_cast<int64_t>(b) * both.stride(1);
    m.heads.values = m.heads.keys + both.stride(0);
    m.heads.count = lengths[b];
    m.heads.stride = both.stride(2);
    m.heads.head_stride = both.stride(3);
    rows.push_back(std::make_shared<CrossMemory>(m));
  }
  return rows;
}

TokenFeedForward::TokenFeedForward(int64_t tokens, int64_t hidden) {
  nn::FeedForwardShape shape;
  shape.width = tokens;
  shape.hidden = hidden;
  feed_forward_ = register_module(
      "feed_forward",
      std::make_shared<nn::FeedForward>(shape, nn::torch_init(tokens), nn::torch_init(hidden)));
}

Tensor TokenFeedForward::forward(const MixingInput& in, ForwardContext& /*context*/,
                                 const Scope& scope) {
  const Tensor y = feed_forward_->forward(in.u.transpose(1, 2), Tensor(), scope);  // [B, D, T]
  return y.transpose(1, 2);
}

}  // namespace rondo
