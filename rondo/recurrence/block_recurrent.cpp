// The recurrent cell and its attention layer.
#include "rondo/recurrence/block_recurrent.h"

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/recurrence/time_mixing.h"

namespace rondo {
namespace {

constexpr double kNormEpsilon = 1e-6;

nn::Initializer gate_bias_law(const std::string& init) {
  if (init == "normal") return nn::normal(0.1);
  return nn::constant(init == "one" ? 1.0 : 0.0);
}

// The keys (or values) that each of `blocks` blocks reads at its end, those of the previous block
// and its own: [B, H, 2W, d] each, from `all` [B, H, ·, d] starting at `first`. With gradients,
// split once and concatenated in pairs: the gradient of every narrow() would be padded with zeros.
std::vector<Tensor> pairs_of_blocks(const Tensor& all, int64_t first, int64_t window,
                                    int64_t blocks) {
  std::vector<Tensor> pairs;
  if (blocks == 1 && first == 0 && all.size(2) == 2 * window) return {all};
  if (blocks == 0 || !all.requires_grad()) {
    for (int64_t i = 0; i < blocks; ++i) {
      pairs.push_back(all.narrow(2, first + i * window, 2 * window));
    }
    return pairs;
  }
  Shape sizes = {first};
  sizes.insert(sizes.end(), static_cast<size_t>(blocks + 1), window);
  sizes.push_back(all.size(2) - first - (blocks + 1) * window);
  const std::vector<Tensor> parts = all.transpose(1, 2).split_with_sizes(sizes, 1);
  for (size_t i = 1; i <= static_cast<size_t>(blocks); ++i) {
    pairs.push_back(at::cat({parts[i], parts[i + 1]}, 1).transpose(1, 2));
  }
  return pairs;
}

bool is_recurrent(const TimeConfig& time, int64_t level) {
  const auto& layers = time.recurrent_layers;  // 1-based
  return std::find(layers.begin(), layers.end(), level + 1) != layers.end();
}

}  // namespace

std::shared_ptr<TokenMixing> make_block_recurrent(const LanguageModelConfig& config,
                                                  int64_t level) {
  if (!is_recurrent(config.time, level)) return make_window(config, level);
  return std::make_shared<BlockRecurrentAttention>(window_options(config, true), config.time,
                                                   config.hidden);
}

// Every level reads the states of the last recurrent level.
std::shared_ptr<TokenMixing> make_feedback(const LanguageModelConfig& config, int64_t level) {
  const WindowOptions options = window_options(config, true);
  if (!is_recurrent(config.time, level)) return std::make_shared<WindowAttention>(options);
  return std::make_shared<BlockRecurrentAttention>(options, config.time, config.hidden,
                                                   StateReaders::all);
}

Shape tokens_by_block(int64_t tokens_seen, int64_t window, int64_t new_tokens) {
  Shape counts;
  for (int64_t done = 0; done < new_tokens; done += counts.back()) {
    counts.push_back(std::min(window - (tokens_seen + done) % window, new_tokens - done));
  }
  return counts;
}

RecurrentCell::RecurrentCell(const TimeConfig& time, const nn::AttentionShape& shape,
                             int64_t hidden)
    : configuration_(time.configuration), normalize_(time.normalize), heads_(shape.heads) {
  const int64_t inner = shape.heads * shape.head_width;
  const int64_t width = shape.width;
  const auto kind = time.gate == "fixed" ? nn::GateKind::fixed : nn::GateKind::lstm;
  const nn::Initializer gate_bias = gate_bias_law(time.gate_init);
  // The authors' code applies tanh to z only in `single`; the paper's text, in every lstm gate.
  tanh_ = time.gate_tanh == "paper" ? time.gate == "lstm" : configuration_ == "single";

  norm_ =
      register_module("norm", std::make_shared<nn::Norm>(nn::NormKind::rms, width, kNormEpsilon));
  if (time.state_ids) identity_ = parameter("identity", {time.states, width}, nn::normal(1.0));
  const bool single = configuration_ == "single";
  projections_ = register_module(
      "projections",
      std::make_shared<nn::Projections>(shape, single ? nn::Projections::kNoOutput : 2 * inner));
  token_query_ = register_module(
      "token_query", std::make_shared<nn::Linear>(width, inner, /*bias=*/false, shape.input));
  scale_ = parameter("scale", {shape.heads}, nn::constant(1.0));
  token_scale_ = parameter("token_scale", {shape.heads}, nn::constant(1.0));
  if (!single) {
    attention_gate_ = register_module(
        "attention_gate", std::make_shared<nn::Gate>(kind, width, 2 * inner, gate_bias));
  }
  if (configuration_ == "skip") return;
  const int64_t reads = single ? 2 * inner : width;
  if (!single) {
    feed_forward_norm_ = register_module(
        "feed_forward_norm", std::make_shared<nn::Norm>(nn::NormKind::rms, width, kNormEpsilon));
  }
  up_ = register_module("up",
                        std::make_shared<nn::Linear>(reads, hidden, false, nn::fan_in_init(reads)));
  down_ = register_module(
      "down", std::make_shared<nn::Linear>(hidden, width, false, nn::fan_in_init(hidden)));
  feed_forward_gate_ = register_module("feed_forward_gate",
                                       std::make_shared<nn::Gate>(kind, width, hidden, gate_bias));
}

RecurrentCell::Read RecurrentCell::read(const Tensor& c, const Scope& scope) const {
  Tensor u = norm_->forward(c, scope / "norm");  // [B, S, D]
  if (identity_.defined()) u = u + identity_;
  Read r;
  const auto heads = projections_->heads_of(u, u, {}, scope, token_query_.get());
  r.keys = for_scores(heads.k);
  r.values = heads.v;
  r.queries = for_scores(heads.q);
  r.token_queries =
      for_scores(heads.more.defined()
                     ? heads.more
                     : nn::split_heads(token_query_->forward(u, scope / "token_query"), heads_));
  return r;
}

// W2 relu(W1 input), gated into c.
Tensor RecurrentCell::feed(const Tensor& input, const Tensor& c, const Scope& scope) const {
  const Tensor h = nn::activate(up_->forward(input, scope / "up"), nn::Activation::relu);
  const Tensor z = squash(down_->forward(h, scope / "down"));
  return feed_forward_gate_->forward(c, z, h, scope / "feed_forward_gate");
}

Tensor RecurrentCell::update(const Tensor& c, const Read& r, const Tensor& keys,
                             const Tensor& values, const Scope& scope) const {
  nn::AttendOptions to_states;
  to_states.scale = scale_;
  nn::AttendOptions to_tokens;
  to_tokens.scale = token_scale_;
  const Tensor attended = nn::merge_heads(
      at::cat({nn::attend(r.queries, r.keys, r.values, to_states, false, scope / "states"),
               nn::attend(r.token_queries, keys, values, to_tokens, false, scope / "tokens")},
              1));  // [B, S, 2·H·d]
  if (configuration_ == "single") return feed(attended, c, scope);
  const Tensor z = squash(projections_->output(attended, scope));
  const Tensor gated = attention_gate_->forward(c, z, attended, scope / "attention_gate");
  if (configuration_ == "skip") return gated;
  return feed(feed_forward_norm_->forward(gated, scope / "feed_forward_norm"), gated, scope);
}

BlockRecurrentAttention::BlockRecurrentAttention(const WindowOptions& options,
                                                 const TimeConfig& time, int64_t hidden,
                                                 StateReaders readers)
    : WindowAttention(options), readers_(readers) {
  cell_ = register_module("cell", std::make_shared<RecurrentCell>(time, options.shape, hidden));
  initial_ = parameter("initial", {time.states, options.shape.width}, nn::normal(0.1));
}

Tensor BlockRecurrentAttention::state(int64_t rows, int64_t level,
                                      const ForwardContext& context) const {
  const Tensor carried = context.state->get(level_key(level, "state"));
  return carried.defined() ? carried : initial_.unsqueeze(0).expand({rows, -1, -1});  // [B, S, D]
}

RecurrentCell::Read BlockRecurrentAttention::read(const Tensor& c, const ForwardContext& context,
                                                  const Scope& scope) const {
  return cell_->read(context.zero_states ? at::zeros_like(c) : c, scope / "cell");
}

StateKeys BlockRecurrentAttention::read_states(int64_t level, int64_t rows,
                                               const ForwardContext& context,
                                               const Scope& scope) const {
  const RecurrentCell::Read r = read(state(rows, level, context), context, scope);
  return {r.keys, r.values};
}

void BlockRecurrentAttention::reset_state(int64_t level, const Tensor& fresh, State& state) const {
  const Tensor carried = state.get(level_key(level, "state"));
  WindowAttention::reset_state(level, fresh, state);
  if (!carried.defined()) return;
  state.set(level_key(level, "state"), start_rows(fresh, initial_, carried));
}

void BlockRecurrentAttention::describe_state(int64_t level, const StatePlace& place,
                                             StateLayout& layout) const {
  const int64_t window = options().window;
  describe_keys(level, window + place.longest() % window, place, layout);
  StateEntry state;
  state.type = place.type;
  state.shape = {place.rows(), initial_.size(0), initial_.size(1)};
  layout.add(level_key(level, "state"), state);
}

Tensor BlockRecurrentAttention::forward(const MixingInput& in, ForwardContext& context,
                                        const Scope& scope) {
  Tokens t = project(in, scope);
  attach_cache(t, in.level, context);
  const Tensor window_heads = attend_window(t, in.level, context, scope);  // [B, H, T, d]

  const int64_t window = options().window;
  const int64_t new_tokens = t.q.size(2);
  const int64_t phase = context.tokens_seen % window;  // tokens of the current block already done
  // Start of the block in all_keys: usually W, more if all rows were reset mid-block.
  const int64_t block = t.all_keys.size(2) - new_tokens - phase;
  const int64_t whole = (phase + new_tokens) / window;  // blocks that end in this call
  const Shape counts = tokens_by_block(phase, window, new_tokens);
  const auto queries = t.state_q.transpose(1, 2).split_with_sizes(counts, 1);  // [B, ·, H, d]
  const auto keys = pairs_of_blocks(t.all_keys, block - window, window, whole);
  const auto values = pairs_of_blocks(t.all_values, block - window, window, whole);
  Tensor c = state(t.q.size(0), in.level, context);
  std::vector<Tensor> state_heads;
  for (size_t i = 0; i < queries.size(); ++i) {
    const RecurrentCell::Read r = read(c, context, scope);
    state_heads.push_back(
        attend_states(queries[i].transpose(1, 2), r.keys, r.values, scope).transpose(1, 2));
    if (i < keys.size()) c = cell_->update(c, r, keys[i], values[i], scope / "cell");
  }
  context.state->set(level_key(in.level, "state"), c);
  scope.record("state", c);
  keep(t, window + (phase + new_tokens) % window, in.level, context);
  return output(window_heads, at::cat(state_heads, 1).transpose(1, 2), scope);
}

// ---- decoding ----

CompiledCell RecurrentCell::compile(nn::WeightPacker& packer) const {
  CompiledCell cell;
  cell.normalize = normalize_;
  cell.tanh = tanh_;
  cell.norm = norm_->compile(packer);
  cell.identity = packer.vector(identity_);
  cell.maps = projections_->compile(packer);
  cell.token_query = token_query_->compile(packer);
  cell.scale = packer.vector(scale_);
  cell.token_scale = packer.vector(token_scale_);
  if (attention_gate_ != nullptr) cell.attention_gate = attention_gate_->compile(packer);
  if (feed_forward_norm_ != nullptr) cell.feed_forward_norm = feed_forward_norm_->compile(packer);
  if (feed_forward_gate_ == nullptr) return cell;
  cell.feed_forward = {up_->compile(packer), down_->compile(packer), nn::Activation::relu};
  cell.feed_forward_gate = feed_forward_gate_->compile(packer);
  return cell;
}

std::shared_ptr<const CompiledMixing> BlockRecurrentAttention::compile(
    nn::WeightPacker& packer) const {
  return std::make_shared<CompiledBlockRecurrent>(compile_weights(packer), cell_->compile(packer),
                                                  initial_.detach());
}

}  // namespace rondo
