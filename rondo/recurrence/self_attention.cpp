// Whole-sequence token mixing.
#include "rondo/recurrence/self_attention.h"

#include <cmath>

#include "rondo/base/error.h"

namespace rondo {
namespace {

double inverse_root(int64_t head_width) { return 1.0 / std::sqrt(static_cast<double>(head_width)); }

// Query t of the last T of K tokens sees key j iff j <= K - T + t. [T, K]
Tensor causal_visible(int64_t queries, int64_t keys) {
  return at::ones({queries, keys}, at::kBool).tril(keys - queries);
}

// [B·n, H, T, d] → [B, H, n·T, d]: n rows that read one memory become more of its queries.
Tensor rows_side_by_side(const Tensor& q, int64_t rows) {
  if (q.size(0) == rows) return q;
  const int64_t n = q.size(0) / rows;
  return q.reshape({rows, n, q.size(1), q.size(2), q.size(3)})
      .transpose(1, 2)
      .reshape({rows, q.size(1), n * q.size(2), q.size(3)});
}

// And back to [B·n, H, T, d].
Tensor rows_apart(const Tensor& y, at::IntArrayRef shape) {
  if (y.size(0) == shape[0]) return y;
  const int64_t n = shape[0] / y.size(0);
  return y.reshape({y.size(0), shape[1], n, shape[2], shape[3]})
      .transpose(1, 2)
      .reshape({shape[0], shape[1], shape[2], shape[3]});
}

}  // namespace

std::string level_key(int64_t level, const char* name) {
  return "level." + std::to_string(level) + "." + name;
}

std::shared_ptr<const CompiledMixing> TokenMixing::compile(nn::WeightPacker& /*packer*/) const {
  throw Error(ExitCode::bad_input, "this network reads whole sequences, not token by token");
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

Tensor SelfAttention::forward(const MixingInput& in, Call& call, const Scope& scope) {
  const SlicePlan slice = slice_plan(options_.permutation, in.loop, in.groups);
  Tensor u = in.u;
  Tensor x = in.x;
  Tensor permutation;
  if (slice.permute && !u.is_meta()) {
    permutation = call.permutations->next(u.size(1));
    u = permute_tokens(u, permutation);
    if (in.signals.query != nullptr) x = permute_tokens(x, permutation);
  }
  auto [q, k, v, unused] = projections_->heads_of(u, x, in.signals, scope);  // [B, H, T, d]
  const double factor = inverse_root(options_.shape.head_width);
  if (call.beams != nullptr) {
    const Tensor seen = call.beams->attend(in.level, q, k, v, factor);  // [B, H, 1, d]
    return projections_->output(nn::merge_heads(seen), scope);
  }
  if (call.state != nullptr) extend(k, v, in.level, *call.state);

  nn::AttendOptions how;
  how.factor = factor;
  how.visible = call.visible;
  if (options_.causal && q.size(2) > 1 && !q.is_meta()) {  // one query, the newest, sees all
    const Tensor causal = causal_visible(q.size(2), k.size(2));
    how.visible = call.visible.defined() ? call.visible.logical_and(causal) : causal;
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

Tensor CrossAttention::forward(const Tensor& u, int64_t index, Call& call, const Scope& scope) {
  const std::string prefix = "cross." + std::to_string(index);
  Tensor k = call.state->get(prefix + ".keys");  // [B, H, S, d]
  Tensor v = call.state->get(prefix + ".values");
  if (!k.defined()) {
    const auto made = projections_->keys_and_values(call.memory, scope);
    k = made.k;
    v = made.v;
    call.state->set(prefix + ".keys", k);
    call.state->set(prefix + ".values", v);
  }
  nn::AttendOptions how;
  how.factor = inverse_root(shape_.head_width);
  how.visible = call.memory_visible;
  const Tensor q = projections_->query(u, u, {}, scope);  // [B·n, H, T, d]
  const int64_t rows = k.size(0);
  const Tensor y = nn::attend(rows_side_by_side(q, rows), k, v, how, is_training(), scope);
  return projections_->output(nn::merge_heads(rows_apart(y, q.sizes())), scope);
}

TokenFeedForward::TokenFeedForward(int64_t tokens, int64_t hidden) {
  nn::FeedForwardShape shape;
  shape.width = tokens;
  shape.hidden = hidden;
  feed_forward_ = register_module(
      "feed_forward",
      std::make_shared<nn::FeedForward>(shape, nn::torch_laws(tokens), nn::torch_laws(hidden)));
}

Tensor TokenFeedForward::forward(const MixingInput& in, Call& /*call*/, const Scope& scope) {
  const Tensor y = feed_forward_->forward(in.u.transpose(1, 2), Tensor(), scope);  // [B, D, T]
  return y.transpose(1, 2);
}

}  // namespace rondo
