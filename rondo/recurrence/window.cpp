// Sliding-window attention in tiles.
#include "rondo/recurrence/window.h"

#include <algorithm>

#include "rondo/recurrence/time_mixing.h"

namespace rondo {
namespace {

// Queries, keys and values are stored as [B, T, H, d], as projections produce them: slicing along T
// copies nothing, concatenating copies whole rows.

// x.narrow(), or x itself if that is all of it: the gradient of narrow() is padded with zeros.
Tensor part_of(const Tensor& x, int64_t dimension, int64_t first, int64_t count) {
  return first == 0 && count == x.size(dimension) ? x : x.narrow(dimension, first, count);
}

// Splits [B, H, n·W, d] into [B·n, H, W, d].
Tensor query_tiles(const Tensor& q, int64_t window) {
  const int64_t n = q.size(2) / window;
  return q.reshape({q.size(0), q.size(1), n, window, q.size(3)})
      .transpose(1, 2)
      .reshape({q.size(0) * n, q.size(1), window, q.size(3)});
}

// Overlapping tiles of 2W keys: [B, H, (n+1)·W, d] → [B·n, H, 2W, d].
Tensor key_tiles(const Tensor& k, int64_t window) {
  const int64_t n = k.size(2) / window - 1;
  if (n == 1) return k;
  const Tensor rows = k.transpose(1, 2);         // [B, (n+1)·W, H, d]
  const auto blocks_from = [&](int64_t first) {  // [B, n, W, H, d]
    return rows.narrow(1, first, n * window).reshape({k.size(0), n, window, k.size(1), k.size(3)});
  };
  return at::cat({blocks_from(0), blocks_from(window)}, 2)  // [B, n, 2W, H, d]
      .view({k.size(0) * n, 2 * window, k.size(1), k.size(3)})
      .transpose(1, 2);
}

// Back from [B·n, H, W, d] to [B, H, n·W, d].
Tensor join_tiles(const Tensor& y, int64_t batch) {
  const int64_t n = y.size(0) / batch;
  return y.reshape({batch, n, y.size(1), y.size(2), y.size(3)})
      .transpose(1, 2)
      .reshape({batch, y.size(1), n * y.size(2), y.size(3)});
}

}  // namespace

WindowOptions window_options(const LanguageModelConfig& config, bool reads_states) {
  const int64_t inner = config.heads * config.head_width;
  WindowOptions o;
  o.shape.width = config.width;
  o.shape.heads = config.heads;
  o.shape.head_width = config.head_width;
  o.shape.bias = false;
  o.shape.input = nn::fan_in_init(config.width);
  o.shape.output = nn::fan_in_init((reads_states ? 2 : 1) * inner);
  o.window = config.time.window;
  o.attend_self = config.time.attend_self;
  o.mask_empty_cache = config.time.mask_empty_cache;
  o.normalize = config.time.normalize;
  o.reads_states = reads_states;
  o.input_dropout = config.dropout;
  o.attention_dropout = config.dropout;
  return o;
}

std::shared_ptr<TokenMixing> make_window(const LanguageModelConfig& config, int64_t /*level*/) {
  return std::make_shared<WindowAttention>(window_options(config, false));
}

std::shared_ptr<TokenMixing> make_all_tokens(const LanguageModelConfig& config, int64_t /*level*/) {
  WindowOptions o = window_options(config, false);
  o.window = 0;
  return std::make_shared<WindowAttention>(o);
}

WindowAttention::WindowAttention(const WindowOptions& options) : options_(options) {
  const nn::AttentionShape& shape = options_.shape;
  const int64_t inner = shape.heads * shape.head_width;
  projections_ = register_module(
      "projections",
      std::make_shared<nn::Projections>(shape, options_.reads_states ? 2 * inner : inner));
  relative_ = register_module("relative", std::make_shared<nn::RelativeBias>(shape.heads));
  scale_ = parameter("scale", {shape.heads}, nn::constant(1.0));
  if (!options_.reads_states) return;
  state_query_ = register_module(
      "state_query", std::make_shared<nn::Linear>(shape.width, inner, /*bias=*/false, shape.input));
  state_scale_ = parameter("state_scale", {shape.heads}, nn::constant(1.0));
}

Tensor WindowAttention::unit_length(const Tensor& x) { return nn::unit_norm(x, 1e-6); }

WindowAttention::Tokens WindowAttention::project(const MixingInput& in, const Scope& scope) const {
  const Tensor u = nn::dropout(in.u, options_.input_dropout, is_training());
  const auto heads = projections_->heads_of(u, in.x, in.hooks, scope, state_query_.get());
  Tokens t;
  t.q = for_scores(heads.q);
  t.k = for_scores(heads.k);
  t.v = heads.v;
  if (state_query_ == nullptr) return t;
  t.state_q = for_scores(
      heads.more.defined()
          ? heads.more
          : nn::split_heads(state_query_->forward(u, scope / "state_query"), options_.shape.heads));
  return t;
}

void WindowAttention::attach_cache(Tokens& t, int64_t level, const ForwardContext& context) const {
  Tensor keys = context.state->get(level_key(level, "keys"));  // [B, ·, H, d]
  Tensor values = context.state->get(level_key(level, "values"));
  if (!keys.defined() && options_.window == 0) {
    t.all_keys = t.k;
    t.all_values = t.v;
    return;
  }
  if (!keys.defined()) {
    const Shape none = {t.k.size(0), options_.window, t.k.size(1), t.k.size(3)};
    keys = at::zeros(none, t.k.options());
    values = keys;
  }
  t.all_keys = at::cat({keys, t.k.transpose(1, 2)}, 1).transpose(1, 2);
  t.all_values = at::cat({values, t.v.transpose(1, 2)}, 1).transpose(1, 2);
}

Tensor WindowAttention::mask(int64_t queries, int64_t keys, const Tensor& positions) const {
  // Key j is reach + i - j tokens before query i.
  const int64_t reach = keys - queries;
  const bool self = options_.attend_self || options_.window == 0;
  Tensor seen = at::ones({queries, keys}, at::kBool).tril(reach - (self ? 0 : 1));  // [Tq, Tk]
  if (options_.window > 0) seen = seen.triu(reach - options_.window);
  if (!options_.mask_empty_cache && options_.window > 0) return seen;
  // With `reach` or more tokens before every row's first query, all keys are its document's own.
  if (positions.select(1, 0).ge(reach).all().item<bool>()) return seen;
  // Masks keys from before the start of the row's document.
  const Tensor distance = (at::arange(queries, at::kLong) + reach).unsqueeze(1) -
                          at::arange(keys, at::kLong).unsqueeze(0);       // [Tq, Tk]
  const Tensor begun = distance.unsqueeze(0).le(positions.unsqueeze(2));  // [B, Tq, Tk]
  return seen.logical_and(begun).unsqueeze(1);                            // [B, 1, Tq, Tk]
}

Tensor WindowAttention::attend_tile(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& positions, Tensor& bias,
                                    const Scope& scope) const {
  if (!bias.defined() || bias.size(1) != q.size(2) || bias.size(2) != k.size(2)) {
    bias = relative_->tile(q.size(2), k.size(2), k.size(2) - q.size(2), scale_);
  }
  nn::AttendOptions how;
  how.scale = scale_;
  how.scaled_bias = bias;
  how.mask = mask(q.size(2), k.size(2), positions).to(q.device());
  how.dropout = options_.attention_dropout;
  return nn::attend(q, k, v, how, is_training(), scope);
}

Tensor WindowAttention::attend_window(const Tokens& t, int64_t level, ForwardContext& context,
                                      const Scope& scope) const {
  const int64_t new_tokens = t.q.size(2);
  const int64_t window = options_.window;
  Tensor& bias = context.biases[level];
  if (window == 0)
    return attend_tile(t.q, t.all_keys, t.all_values, context.positions, bias, scope);

  const int64_t behind = t.all_keys.size(2) - new_tokens - window;  // recurrent layers keep more
  const auto keys_for = [&](const Tensor& all, int64_t first, int64_t count) {
    return part_of(all, 2, behind + first, window + count);
  };
  const int64_t whole = new_tokens / window * window;
  std::vector<Tensor> parts;
  if (whole > 0) {
    const int64_t n = whole / window;
    const Tensor positions = context.positions.narrow(1, 0, whole).reshape({-1, window});
    const Tensor y = attend_tile(query_tiles(part_of(t.q, 2, 0, whole), window),
                                 key_tiles(keys_for(t.all_keys, 0, whole), window),
                                 key_tiles(keys_for(t.all_values, 0, whole), window),
                                 positions.expand({t.q.size(0) * n, window}), bias, scope);
    parts.push_back(join_tiles(y, t.q.size(0)));
  }
  if (const int64_t rest = new_tokens - whole; rest > 0) {
    parts.push_back(attend_tile(t.q.narrow(2, whole, rest), keys_for(t.all_keys, whole, rest),
                                keys_for(t.all_values, whole, rest),
                                context.positions.narrow(1, whole, rest), bias, scope));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 2);
}

Tensor WindowAttention::attend_states(const Tensor& queries, const Tensor& keys,
                                      const Tensor& values, const Scope& scope) const {
  nn::AttendOptions how;
  how.scale = state_scale_;
  return nn::attend(queries, keys, values, how, is_training(), scope / "states");
}

void WindowAttention::keep(const Tokens& t, int64_t count, int64_t level, ForwardContext& context) {
  const auto last = [&](const Tensor& all, const Tensor& now) {  // [B, count, H, d]
    const Tensor& from = count <= now.size(2) ? now : all;
    return part_of(from, 2, from.size(2) - count, count).transpose(1, 2);
  };
  context.state->set(level_key(level, "keys"), last(t.all_keys, t.k));
  context.state->set(level_key(level, "values"), last(t.all_values, t.v));
}

Tensor WindowAttention::output(const Tensor& heads, const Scope& scope) const {
  return projections_->output(nn::merge_heads(heads), scope);
}

Tensor WindowAttention::output(const Tensor& heads, const Tensor& more, const Scope& scope) const {
  scope.record("window_heads", heads);
  scope.record("state_heads", more);
  const Tensor both = at::cat({heads.transpose(1, 2), more.transpose(1, 2)}, 2);  // [B, T, 2H, d]
  return projections_->output(both.flatten(2), scope);
}

void WindowAttention::describe_keys(int64_t level, Extent count, const StatePlace& place,
                                    StateLayout& layout) const {
  StateEntry keys;
  keys.type = place.type;
  keys.shape = {place.rows(), count, options_.shape.heads, options_.shape.head_width};
  if (options_.window == 0) keys.like = level_key(0, "keys");  // all levels keep equally many
  StateEntry values = keys;
  values.like = level_key(level, "keys");
  layout.add(level_key(level, "keys"), keys);
  layout.add(level_key(level, "values"), values);
}

void WindowAttention::describe_state(int64_t level, const StatePlace& place,
                                     StateLayout& layout) const {
  if (options_.window > 0) return describe_keys(level, options_.window, place, layout);
  // At least as many as the longest row has; keys of earlier documents in the rows may precede.
  describe_keys(level, {place.longest(), kUnlimited}, place, layout);
}

WindowWeights WindowAttention::compile_weights(nn::WeightPacker& packer) const {
  WindowWeights w;
  w.maps = projections_->compile(packer);
  if (state_query_ != nullptr) w.state_query = state_query_->compile(packer);
  w.scale = packer.vector(scale_);
  w.state_scale = packer.vector(state_scale_);
  w.window = options_.window;
  w.attend_self = options_.attend_self;
  w.mask_empty_cache = options_.mask_empty_cache;
  w.normalize = options_.normalize;
  w.rounded = packer.format() != kernels::PackedFormat::fp32 && options_.window > 0;
  if (options_.window > 0) {
    const int64_t seen = options_.window + (options_.attend_self ? 1 : 0);
    w.bias = packer.vector(relative_->tile(1, seen, options_.window));
  } else {
    w.distances = 2 * nn::kRelativeDistances;
    w.bias = packer.vector(relative_->tile(1, w.distances, w.distances - 1).flip(2));
  }
  return w;
}

std::shared_ptr<const CompiledMixing> WindowAttention::compile(nn::WeightPacker& packer) const {
  const WindowWeights weights = compile_weights(packer);
  if (options_.window == 0) return std::make_shared<CompiledGrowingAttention>(weights);
  return std::make_shared<CompiledWindow>(weights);
}

Tensor WindowAttention::forward(const MixingInput& in, ForwardContext& context,
                                const Scope& scope) {
  Tokens t = project(in, scope);
  attach_cache(t, in.level, context);
  const Tensor y = attend_window(t, in.level, context, scope);  // [B, H, T, d]
  keep(t, options_.window == 0 ? t.all_keys.size(2) : options_.window, in.level, context);
  if (!options_.reads_states) return output(y, scope);
  return output(y, attend_states(t.state_q, context.state_keys, context.state_values, scope),
                scope);
}

}  // namespace rondo
