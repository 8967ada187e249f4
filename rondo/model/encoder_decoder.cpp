// The translation network.
#include "rondo/model/encoder_decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/require.h"
#include "rondo/nn/gradients.h"
#include "rondo/nn/position.h"

namespace rondo {
namespace {

bool fairseq(const EncoderDecoderConfig& c) { return c.style == "fairseq"; }

nn::AttentionShape translation_attention(const EncoderDecoderConfig& c) {
  const int64_t d = c.width;
  nn::AttentionShape shape = {d, c.heads, d / c.heads, false, nn::torch_init(d), nn::torch_init(d)};
  if (fairseq(c)) {
    shape.bias = true;
    shape.input = {nn::xavier_uniform(d, d, 1.0 / std::sqrt(2.0)), nn::constant(0.0)};
    shape.output = {nn::xavier_uniform(d, d), nn::constant(0.0)};
  }
  return shape;
}

StackOptions translation_stack_options(const EncoderDecoderConfig& c, const DepthPlan& plan) {
  StackOptions o;
  o.width = c.width;
  o.placement = NormPlacement::post;
  // fairseq uses torch's default epsilon for every norm, whichever weights are shared.
  o.norm_epsilon = fairseq(c) && c.norm_epsilon == 0.0 ? 1e-5 : level_epsilon(c.norm_epsilon, plan);
  o.feed_forward.width = c.width;
  o.feed_forward.hidden = c.hidden;
  o.feed_forward.bias = fairseq(c);
  o.feed_forward.activation = fairseq(c) ? nn::Activation::relu : nn::Activation::gelu;
  o.feed_forward.hidden_dropout = fairseq(c) ? 0.0 : c.dropout;
  o.feed_forward_up = fairseq(c)
                          ? nn::LinearInit{nn::xavier_uniform(c.width, c.hidden), nn::constant(0.0)}
                          : nn::LinearInit{nn::normal(0.02), nn::constant(0.0)};
  o.feed_forward_down = o.feed_forward_up;
  o.mixing_dropout = c.dropout;
  o.feed_forward_dropout = c.dropout;
  o.inner = c.width;
  o.ring = c.depth.ring;
  o.recursive = c.depth.recursive;
  return o;
}

// The mask of keys that are not padding, [B, 1, 1, T].
Tensor not_padding(const Tensor& tokens, int64_t padding) {
  return tokens.ne(padding).unsqueeze(1).unsqueeze(1);
}

}  // namespace

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config) : config_(config) {
  const EncoderDecoderConfig& c = config_;
  nn::Initializer initializer =
      fairseq(c) ? nn::normal(1.0 / std::sqrt(static_cast<double>(c.width))) : nn::normal(1.0);
  initializer.zero_row = c.padding;
  source_embedding_ = parameter("source_embedding", {c.source_vocabulary, c.width}, initializer);
  target_embedding_ = parameter("target_embedding", {c.target_vocabulary, c.width}, initializer);
  encoder_ = register_module("encoder", make_stack(false));
  decoder_ = register_module("decoder", make_stack(true));
  if (!fairseq(c)) {
    head_ =
        register_module("head", std::make_shared<nn::Linear>(c.width, c.target_vocabulary, true));
  }
}

std::shared_ptr<Stack> EncoderDecoder::make_stack(bool decoder) const {
  PlanShape shape;
  shape.cross = decoder;
  shape.one_norm_per_level = config_.one_norm_per_level;
  SelfAttentionOptions attention;
  attention.shape = translation_attention(config_);
  attention.causal = decoder;
  const DepthPlan plan = make_plan(config_.depth, shape);
  return std::make_shared<Stack>(
      translation_stack_options(config_, plan), plan,
      [&](int64_t) { return std::make_shared<SelfAttention>(attention); }, attention.shape);
}

Tensor EncoderDecoder::embed(const Tensor& table, const Tensor& tokens, int64_t first,
                             const Scope& scope) const {
  const EncoderDecoderConfig& c = config_;
  Tensor x = nn::embed(table, tokens, c.padding);  // [B, T, D]
  if (fairseq(c)) x = x * std::sqrt(static_cast<double>(c.width));
  const bool positions = !encoder_->plan().adds_positions();  // otherwise levels add their own
  if (positions) (scope / "positions").elementwise(x);
  if (fairseq(c) && positions) {
    // Positions count from padding + 1 and skip padding, which gets a zero vector.
    const Tensor real = tokens.ne(c.padding);  // [B, T]
    const Tensor numbers = real.cumsum(1) + (first + c.padding);
    const Tensor p = nn::split_sinusoidal_positions(numbers, c.width, x.options());
    x = x + p * real.unsqueeze(-1).to(x.scalar_type());
  } else if (positions) {
    x = x + nn::sinusoidal_positions(first, tokens.size(1), c.width, x.options());
  }
  return nn::dropout(x, c.dropout, is_training());
}

State EncoderDecoder::encode(const Tensor& source, const Scope& scope) {
  check_tokens(source, "source", config_.source_vocabulary);
  ForwardContext context;
  context.positions = at::arange(source.size(1), at::kLong).unsqueeze(0);  // [1, S]
  if (!source.is_meta()) context.mask = not_padding(source, config_.padding);
  if (context.mask.defined() && context.mask.all().item<bool>()) context.mask = Tensor();
  const Tensor x = embed(source_embedding_, source, 0, scope);
  State state;
  state.set("memory", encoder_->forward(x, context, scope / "encoder"));  // [B, S, D]
  if (context.mask.defined()) state.set("memory_mask", context.mask);
  state.set("position", at::zeros({source.size(0)}, at::kLong));
  return state;
}

Tensor EncoderDecoder::decode_rows(const Tensor& target, State& state, const Scope& scope) {
  check_tokens(target, "target", config_.target_vocabulary);
  require(state.has("memory") && state.has("position"),
          "decoding: expected a state created by encode()");
  require(state.get("memory").size(0) == target.size(0),
          "inputs: target: expected {} rows, as in source, got {}", state.get("memory").size(0),
          target.size(0));
  const int64_t first = state.get("position").max().item<int64_t>();
  const int64_t count = target.size(1);
  ForwardContext context;
  context.state = &state;
  context.memory = state.get("memory");
  context.memory_mask = state.get("memory_mask");
  context.positions = at::arange(first, first + count, at::kLong).unsqueeze(0);  // [1, T]
  if (!target.is_meta()) {
    const Tensor mine = not_padding(target, config_.padding);
    Tensor before = state.get("target_mask");  // undefined: no padding so far
    if (before.defined() || !mine.all().item<bool>()) {
      if (!before.defined()) before = at::ones({target.size(0), 1, 1, first}, mine.options());
      context.mask = at::cat({before, mine}, 3);  // [B, 1, 1, T all]
      state.set("target_mask", context.mask);
    }
  }
  const Tensor x = embed(target_embedding_, target, first, scope);
  const Tensor y = decoder_->forward(x, context, scope / "decoder");  // [B, T, D]
  state.set("position", state.get("position") + count);
  scope.record("output", y);
  return y;
}

Tensor EncoderDecoder::decode(const Tensor& target, State& state, const Scope& scope) {
  return head(decode_rows(target, state, scope), scope);
}

Tensor EncoderDecoder::head(const Tensor& rows, const Scope& scope) const {
  return nn::linear(rows, head_map(), scope / "head");
}

nn::LinearMap EncoderDecoder::head_map() const {
  return head_ != nullptr ? head_->map() : nn::LinearMap{target_embedding_, Tensor()};
}

LossSum EncoderDecoder::loss_of_target(const Tensor& target, const Tensor& labels, State& state,
                                       double smoothing) {
  nn::ends_stage(state.get("memory"), 1);
  const Tensor y = decode_rows(target, state, Scope());
  nn::ends_stage(y, 0);
  nn::Head head;
  head.map = head_map();
  return sum_cross_entropy(y, head, labels, -1, smoothing);
}

NamedTensors EncoderDecoder::forward(const NamedTensors& inputs, State& /*state*/,
                                     const Scope& scope) {
  const Tensor source = require_tokens(inputs, "source", config_.source_vocabulary);
  const Tensor target = require_tokens(inputs, "target", config_.target_vocabulary);
  State local = encode(source, scope);
  return {{"logits", decode(target, local, scope)}};
}

Tensor EncoderDecoder::loss(const NamedTensors& inputs, const NamedTensors& outputs) const {
  return mean_cross_entropy(outputs.at("logits"), require_input(inputs, "labels", at::kLong, 2),
                            config_.padding);
}

NamedTensors EncoderDecoder::example(int64_t tokens) const {
  const int64_t count = tokens > 0 ? tokens : 50;
  const Tensor sentence = at::empty({1, count}, at::TensorOptions(at::kLong).device(at::kMeta));
  return {{"source", sentence}, {"target", sentence}};
}

}  // namespace rondo
