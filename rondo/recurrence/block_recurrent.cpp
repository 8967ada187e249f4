// The recurrent cell and the layer around it.
#include "rondo/recurrence/block_recurrent.h"

#include <algorithm>

namespace rondo {
namespace {

constexpr double kNormEpsilon = 1e-6;

nn::Law gate_bias_law(const std::string& init) {
  if (init == "normal") return nn::normal(0.1);
  return nn::constant(init == "one" ? 1.0 : 0.0);
}

// The keys (or values) that each of `blocks` blocks reads at its end, its own and those of the
// block before: [B, H, 2W, d] each, out of `all` [B, H, ·, d] from `first` on. Cut once and joined
// in pairs where there are gradients: that of each single part would be filled up with zeros.
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

}  // namespace

Shape tokens_by_block(int64_t behind, int64_t window, int64_t new_tokens) {
  Shape counts;
  for (int64_t done = 0; done < new_tokens; done += counts.back()) {
    counts.push_back(std::min(window - (behind + done) % window, new_tokens - done));
  }
  return counts;
}

RecurrentCell::RecurrentCell(const TimeConfig& time, const nn::AttentionShape& shape,
                             int64_t hidden)
    : configuration_(time.configuration), normalise_(time.normalise), heads_(shape.heads) {
  const int64_t inner = shape.heads * shape.head_width;
  const int64_t width = shape.width;
  const auto kind = time.gate == "fixed" ? nn::GateKind::fixed : nn::GateKind::lstm;
  const nn::Law gate_bias = gate_bias_law(time.gate_init);
  // The authors' program squashes z only in `single`; the paper's text, in every lstm gate.
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
                        std::make_shared<nn::Linear>(reads, hidden, false, nn::fan_in_laws(reads)));
  down_ = register_module(
      "down", std::make_shared<nn::Linear>(hidden, width, false, nn::fan_in_laws(hidden)));
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

// W2 relu(W1 input), gated onto c.
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
                                                 const TimeConfig& time, int64_t hidden)
    : WindowAttention(options) {
  cell_ = register_module("cell", std::make_shared<RecurrentCell>(time, options.shape, hidden));
  initial_ = parameter("initial", {time.states, options.shape.width}, nn::normal(0.1));
}

Tensor BlockRecurrentAttention::state(int64_t rows, int64_t level, const Call& call) const {
  const Tensor carried = call.state->get(level_key(level, "state"));
  return carried.defined() ? carried : initial_.unsqueeze(0).expand({rows, -1, -1});  // [B, S, D]
}

RecurrentCell::Read BlockRecurrentAttention::read(const Tensor& c, const Scope& scope) const {
  return cell_->read(c, scope / "cell");
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

void BlockRecurrentAttention::read_into(LevelCache& cache) const {
  const RecurrentCell::Read r = cell_->read(cache.state, Scope());
  cache.state_keys = r.keys;
  cache.state_values = r.values;
  cache.state_queries = r.queries;
  cache.token_queries = r.token_queries;
}

void BlockRecurrentAttention::open_cache(const State& state, int64_t level, int64_t rows,
                                         int64_t phase, LevelCache& cache) const {
  WindowAttention::open_cache(state, level, rows, phase, cache);
  const Tensor carried = state.get(level_key(level, "state"));
  cache.state = carried.defined() ? carried : initial_.unsqueeze(0).expand({rows, -1, -1});
  read_into(cache);
}

void BlockRecurrentAttention::close_cache(const LevelCache& cache, int64_t level, int64_t phase,
                                          State& state) const {
  // The cell reads two windows of keys at the end of the block: keep all of them.
  const auto all_of = [&](const Tensor& buffer) {
    return buffer.narrow(2, 0, options().window + phase).transpose(1, 2).contiguous();
  };
  state.set(level_key(level, "keys"), all_of(cache.keys));
  state.set(level_key(level, "values"), all_of(cache.values));
  state.set(level_key(level, "state"), cache.state.contiguous());
}

void BlockRecurrentAttention::end_block(LevelCache& cache) const {
  const RecurrentCell::Read r = {cache.state_keys, cache.state_values, cache.state_queries,
                                 cache.token_queries};
  cache.state = cell_->update(cache.state, r, cache.keys, cache.values, Scope());
  read_into(cache);
  WindowAttention::end_block(cache);
}

Tensor BlockRecurrentAttention::forward(const MixingInput& in, Call& call, const Scope& scope) {
  if (call.steps != nullptr) return step(in, call, scope);
  Tokens t = project(in, scope);
  attach_cache(t, in.level, call);
  const Tensor window_heads = attend_window(t, in.level, call, scope);  // [B, H, T, d]

  const int64_t window = options().window;
  const int64_t new_tokens = t.q.size(2);
  const int64_t phase = call.behind % window;  // tokens of the current block already behind
  // Where it starts among all keys: usually W, further on when all rows began anew mid-block.
  const int64_t block = t.all_keys.size(2) - new_tokens - phase;
  const int64_t whole = (phase + new_tokens) / window;  // blocks that end here
  const Shape counts = tokens_by_block(phase, window, new_tokens);
  const auto queries = t.state_q.transpose(1, 2).split_with_sizes(counts, 1);  // [B, ·, H, d]
  const auto keys = pairs_of_blocks(t.all_keys, block - window, window, whole);
  const auto values = pairs_of_blocks(t.all_values, block - window, window, whole);
  Tensor c = state(t.q.size(0), in.level, call);
  std::vector<Tensor> state_heads;
  for (size_t i = 0; i < queries.size(); ++i) {
    const RecurrentCell::Read r = read(call.zero_states ? at::zeros_like(c) : c, scope);
    state_heads.push_back(
        attend_states(queries[i].transpose(1, 2), r.keys, r.values, scope).transpose(1, 2));
    if (i < keys.size()) c = cell_->update(c, r, keys[i], values[i], scope / "cell");
  }
  call.state->set(level_key(in.level, "state"), c);
  scope.record("state", c);
  keep(t, window + (phase + new_tokens) % window, in.level, call);
  return output(window_heads, at::cat(state_heads, 1).transpose(1, 2), scope);
}

}  // namespace rondo
