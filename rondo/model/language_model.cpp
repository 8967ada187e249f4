// The language model: plan, state handling, forward pass.
#include "rondo/model/language_model.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/recurrence/block_recurrent.h"
#include "rondo/recurrence/memorizing.h"

namespace rondo {
namespace {

// The scheme's plan, in which levels with a recurrent state or a memory own their weights: they
// compute something else than the others, so there is nothing to share.
DepthPlan language_plan(const LanguageModelConfig& c) {
  DepthPlan plan = make_plan(c.depth, PlanShape{});
  int64_t mixings = plan.mixings();
  int64_t feed_forwards = plan.feed_forwards();
  for (int64_t i = 0; i < plan.size(); ++i) {
    if (!c.time.recurrent_at(i) && !c.time.memory_at(i)) continue;
    if (c.depth.scheme == "vanilla") continue;
    Level& level = plan.levels[static_cast<size_t>(i)];
    level.mixing = mixings++;
    if (c.depth.scheme != "one-wide") level.feed_forward = feed_forwards++;
    level.signal = kNone;
    level.loop = 0;
  }
  compact(plan);
  return plan;
}

StackOptions stack_options(const LanguageModelConfig& c) {
  StackOptions o;
  o.width = c.width;
  o.placement = NormPlacement::pre;
  o.norm = nn::NormKind::rms;
  o.norm_epsilon = LanguageModel::kNormEpsilon;
  o.feed_forward.width = c.width;
  o.feed_forward.hidden = c.hidden;
  o.feed_forward.bias = false;
  o.feed_forward.activation = nn::Activation::relu;
  o.feed_forward_up = nn::fan_in_laws(c.width);
  o.feed_forward_down = nn::fan_in_laws(c.hidden);
  o.feed_forward_dropout = c.dropout;
  o.inner = c.heads * c.head_width;
  o.ring = c.depth.ring;
  o.recursive = c.depth.recursive;
  return o;
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config)
    : config_(config), plan_(language_plan(config)) {
  embedding_ = parameter("embedding", {config_.vocabulary, config_.width}, nn::normal(1.0));
  stack_ = register_module(
      "stack", std::make_shared<Stack>(stack_options(config_), plan_,
                                       [this](int64_t index) { return make_mixing(index); }));
  norm_ = register_module(
      "norm", std::make_shared<nn::Norm>(nn::NormKind::rms, config_.width, kNormEpsilon));
}

std::shared_ptr<TokenMixing> LanguageModel::make_mixing(int64_t index) const {
  const TimeConfig& time = config_.time;
  int64_t level = 0;  // the first that plays this mixing; recurrent ones are played once
  while (plan_.levels[static_cast<size_t>(level)].mixing != index) ++level;

  WindowOptions o;
  o.shape.width = config_.width;
  o.shape.heads = config_.heads;
  o.shape.head_width = config_.head_width;
  o.shape.bias = false;
  o.shape.input = nn::fan_in_laws(config_.width);
  o.window = time.kind == "none" ? 0 : time.window;
  o.attend_self = time.attend_self;
  o.mask_empty_cache = time.mask_empty_cache;
  o.normalise = time.normalise;
  o.reads_states = time.recurrent_at(level) || time.kind == "feedback";
  o.shape.output = nn::fan_in_laws((o.reads_states ? 2 : 1) * config_.heads * config_.head_width);
  o.input_dropout = config_.dropout;
  o.attention_dropout = config_.dropout;
  if (time.recurrent_at(level)) {
    return std::make_shared<BlockRecurrentAttention>(o, time, config_.hidden);
  }
  if (time.memory_at(level)) {
    return std::make_shared<MemorizingAttention>(o, time.memory_size, time.neighbours);
  }
  return std::make_shared<WindowAttention>(o);
}

const WindowAttention& LanguageModel::window_attention(int64_t level) const {
  return dynamic_cast<const WindowAttention&>(
      stack_->mixing(plan_.levels[static_cast<size_t>(level)].mixing));
}

int64_t LanguageModel::feedback_level() const {
  int64_t source = kNone;
  for (int64_t i = 0; i < plan_.size() && config_.time.kind == "feedback"; ++i) {
    if (config_.time.recurrent_at(i)) source = i;
  }
  return source;
}

Tensor LanguageModel::begin(State& state, int64_t rows) const {
  if (state.empty()) {
    state.set("position", at::zeros({rows}, at::kLong));
  } else {
    state_layout(state, rows, "state").check_shapes(state, "state", StateLayout::Types::any_float);
  }
  const Tensor fresh = state.fresh();
  if (fresh.defined() && fresh.any().item<bool>()) {
    const State before = state;
    for (const auto& [name, tensor] : before.tensors()) {
      if (name != "fresh")
        state.set(name, start_rows(fresh, at::zeros({}, tensor.options()), tensor));
    }
    for (int64_t i = 0; i < plan_.size(); ++i) {
      if (!config_.time.recurrent_at(i) || !before.has(level_key(i, "state"))) continue;
      const auto& mixing = dynamic_cast<const BlockRecurrentAttention&>(window_attention(i));
      state.set(level_key(i, "state"),
                start_rows(fresh, mixing.initial(), before.get(level_key(i, "state"))));
    }
  }
  state.set("fresh", at::zeros({rows}, at::kBool));
  return state.get("position").unsqueeze(1);  // [B, 1]
}

int64_t LanguageModel::behind(const Tensor& position) const {
  const int64_t first = position.min().item<int64_t>();
  const bool blocks = config_.time.recurrent() || config_.time.kind == "memorizing";
  if (blocks && position.sub(first).remainder(config_.time.window).any().item<bool>()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("reset: rows may begin a new document only between blocks of {} tokens, "
                    "unless all rows do",
                    config_.time.window),
        "read each document in segments that are multiples of the window");
  }
  return first;
}

// Feedback: the whole stack block by block, every level reading the states of the last recurrent
// level as they were at the block's start.
Tensor LanguageModel::forward_by_blocks(const Tensor& x, Call& call, const Scope& scope) {
  const int64_t source = feedback_level();
  const auto& recurrent = dynamic_cast<const BlockRecurrentAttention&>(window_attention(source));
  const int64_t window = config_.time.window;
  const Tensor positions = call.positions;
  const Shape counts = tokens_by_block(call.behind, window, x.size(1));
  int64_t done = 0;
  std::vector<Tensor> outputs;
  for (const Tensor& block : x.split_with_sizes(counts, 1)) {
    const int64_t count = block.size(1);
    const Tensor c = recurrent.state(x.size(0), source, call);
    const auto read = recurrent.read(call.zero_states ? at::zeros_like(c) : c,
                                     scope / "level" / source / "mixing");
    call.state_keys = read.keys;
    call.state_values = read.values;
    call.positions = positions.narrow(1, done, count);
    outputs.push_back(stack_->forward(block, call, scope));
    call.behind += count;
    done += count;
  }
  return at::cat(outputs, 1);
}

Tensor LanguageModel::read_tokens(const Tensor& tokens, State& state, const Scope& scope,
                                  bool zero_states) {
  check_tokens(tokens, "tokens", config_.vocabulary);
  const int64_t count = tokens.size(1);
  const Tensor position = begin(state, tokens.size(0));
  Call call;
  call.state = &state;
  call.zero_states = zero_states;
  call.positions = position + at::arange(count, at::kLong);  // [B, N]
  call.behind = behind(position);

  const Tensor x = nn::embed(embedding_, tokens);  // [B, N, D]
  const Tensor y = config_.time.kind == "feedback" ? forward_by_blocks(x, call, scope / "stack")
                                                   : stack_->forward(x, call, scope / "stack");
  state.set("position", (position + count).squeeze(1));
  state = state.detach();
  return y;
}

Tensor LanguageModel::forward_tokens(const Tensor& tokens, State& state, const Scope& scope,
                                     bool zero_states) {
  return finish(read_tokens(tokens, state, scope, zero_states), scope);
}

LossSum LanguageModel::loss_of_tokens(const Tensor& tokens, const Tensor& labels, State& state,
                                      double smoothing) {
  const Tensor y = output_rows(read_tokens(tokens, state, Scope(), false), Scope());
  return sum_cross_entropy(y, head(), labels, -1, smoothing);
}

Tensor LanguageModel::output_rows(const Tensor& stream, const Scope& scope) const {
  const Tensor y =
      nn::dropout(norm_->forward(stream, scope / "norm"), config_.dropout, is_training());
  scope.record("output", y);
  return y;
}

nn::Head LanguageModel::head() const {
  return {{embedding_, Tensor()}, 1.0 / std::sqrt(static_cast<double>(config_.vocabulary))};
}

Tensor LanguageModel::finish(const Tensor& stream, const Scope& scope) const {
  const Tensor y = output_rows(stream, scope);
  const double root = std::sqrt(static_cast<double>(config_.vocabulary));
  return nn::linear(y, embedding_, Tensor(), scope / "head") / root;  // [B, N, V]
}

NamedTensors LanguageModel::forward(const NamedTensors& inputs, State& state, const Scope& scope) {
  const Tensor tokens = require_tokens(inputs, "tokens", config_.vocabulary);
  if (inputs.count("reset") != 0) {
    const Tensor rows = require_input(inputs, "reset", at::kBool, 1);
    if (rows.size(0) != tokens.size(0)) {
      throw Error(ExitCode::bad_input, fmt::format("inputs: reset: expected {} rows, got {}",
                                                   tokens.size(0), rows.size(0)));
    }
    state = state.reset(rows);
  }
  return {{"logits", forward_tokens(tokens, state, scope)}};
}

Tensor LanguageModel::loss(const NamedTensors& inputs, const NamedTensors& outputs) const {
  return mean_cross_entropy(outputs.at("logits"), require_input(inputs, "labels", at::kLong, 2));
}

NamedTensors LanguageModel::example(int64_t tokens) const {
  const int64_t count = tokens > 0 ? tokens : config_.time.segment;
  return {{"tokens", at::empty({1, count}, at::TensorOptions(at::kLong).device(at::kMeta))}};
}

}  // namespace rondo
