// The language model: plan, state handling, forward pass.
#include "rondo/model/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/recurrence/block_recurrent.h"
#include "rondo/recurrence/time_mixing.h"

namespace rondo {
namespace {

// How many levels of the plan use a mixing.
int64_t times_played(const DepthPlan& plan, int64_t mixing) {
  return std::count_if(plan.levels.begin(), plan.levels.end(),
                       [&](const Level& level) { return level.mixing == mixing; });
}

// The scheme's plan, except that levels with a recurrent state or a memory own their weights: they
// compute something different, so there is nothing to share.
DepthPlan language_plan(const LanguageModelConfig& c) {
  const DepthPlan shared = make_plan(c.depth, PlanShape{});
  DepthPlan plan = shared;
  int64_t mixings = plan.mixings();
  int64_t feed_forwards = plan.feed_forwards();
  const TimeKind& time = time_kinds().find(c.time.kind);
  const auto own = time.own_layers != nullptr ? time.own_layers(c.time) : std::vector<int64_t>();
  for (const int64_t layer : own) {
    Level& level = plan.levels.at(static_cast<size_t>(layer - 1));
    if (times_played(shared, level.mixing) == 1 && level.signal == kNone) continue;
    level.mixing = mixings++;
    level.feed_forward = feed_forwards++;
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
  o.feed_forward_up = nn::fan_in_init(c.width);
  o.feed_forward_down = nn::fan_in_init(c.hidden);
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
  int64_t level = 0;  // the first to use this mixing; recurrent mixings are used only once
  while (plan_.levels[static_cast<size_t>(level)].mixing != index) ++level;
  return time_mixings().find(config_.time.kind).make(config_, level);
}

Tensor LanguageModel::begin(State& state, int64_t rows) const {
  if (state.empty()) {
    state.set("position", at::zeros({rows}, at::kLong));
  } else {
    state_layout(state, rows, "state").check_shapes(state, "state", StateLayout::Types::any_float);
  }
  const Tensor fresh = state.fresh();
  if (fresh.defined() && fresh.any().item<bool>()) {
    state.set("position", start_rows(fresh, at::zeros({}, at::kLong), state.get("position")));
    stack_->reset_state(fresh, state);
  }
  state.set("fresh", at::zeros({rows}, at::kBool));
  return state.get("position").unsqueeze(1);  // [B, 1]
}

int64_t LanguageModel::tokens_seen(const Tensor& position) const {
  const int64_t first = position.min().item<int64_t>();
  const int64_t block = stack_->block();
  if (block > 0 && position.sub(first).remainder(block).any().item<bool>()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("reset: rows may start a new document only between blocks of {} tokens, "
                    "unless all rows do",
                    block),
        "process each document in segments that are multiples of the window");
  }
  return first;
}

// Feedback: runs the whole stack block by block; every level reads the states of level `source` at
// the start of the block.
Tensor LanguageModel::forward_by_blocks(const Tensor& x, int64_t source, ForwardContext& context,
                                        const Scope& scope) {
  const Tensor positions = context.positions;
  const Shape counts = tokens_by_block(context.tokens_seen, stack_->block(), x.size(1));
  int64_t done = 0;
  std::vector<Tensor> outputs;
  for (const Tensor& block : x.split_with_sizes(counts, 1)) {
    const int64_t count = block.size(1);
    const StateKeys states = stack_->mixing_of(source).read_states(
        source, x.size(0), context, scope / "level" / source / "mixing");
    context.state_keys = states.keys;
    context.state_values = states.values;
    context.positions = positions.narrow(1, done, count);
    outputs.push_back(stack_->forward(block, context, scope));
    context.tokens_seen += count;
    done += count;
  }
  return at::cat(outputs, 1);
}

Tensor LanguageModel::read_tokens(const Tensor& tokens, State& state, const Scope& scope,
                                  bool zero_states) {
  check_tokens(tokens, "tokens", config_.vocabulary);
  const int64_t count = tokens.size(1);
  const Tensor position = begin(state, tokens.size(0));
  ForwardContext context;
  context.state = &state;
  context.zero_states = zero_states;
  context.positions = position + at::arange(count, at::kLong);  // [B, N]
  context.tokens_seen = tokens_seen(position);

  const Tensor x = nn::embed(embedding_, tokens);  // [B, N, D]
  const int64_t source = stack_->feedback_level();
  const Tensor y = source != kNone ? forward_by_blocks(x, source, context, scope / "stack")
                                   : stack_->forward(x, context, scope / "stack");
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
