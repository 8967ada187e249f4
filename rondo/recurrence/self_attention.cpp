// Whole-sequence token mixing.
#include "rondo/recurrence/self_attention.h"

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/kernels/decode_attention.h"

namespace rondo {
namespace {

double inverse_root(int64_t head_width) { return 1.0 / std::sqrt(static_cast<double>(head_width)); }

// Query t of the last T of K tokens sees key j iff j <= K - T + t. [T, K]
Tensor causal_visible(int64_t queries, int64_t keys) {
  return at::ones({queries, keys}, at::kBool).tril(keys - queries);
}

// Keys and values of tokens that rows of a search have read. They stay where they were written: a
// row that goes on as the continuation of another only learns their places.
class TokenStore {
 public:
  explicit TokenStore(int64_t width) : width_(width) {}
  // Room for a key and a value [width] each.
  float* take() {
    if (used_ == kTokens || chunks_.empty()) {
      chunks_.push_back(at::empty({2 * kTokens * width_}));  // in large pages, used again
      used_ = 0;
    }
    return chunks_.back().data_ptr<float>() + 2 * width_ * used_++;
  }
  int64_t bytes() const {
    return static_cast<int64_t>(chunks_.size() * sizeof(float)) * 2 * kTokens * width_;
  }

 private:
  static constexpr int64_t kTokens = 32;  // in a chunk
  int64_t width_;
  int64_t used_ = 0;
  std::vector<Tensor> chunks_;
};

// One row of a search at one level; copies share what they have read.
class BeamCache : public RowCache {
 public:
  explicit BeamCache(int64_t width) : store_(std::make_shared<TokenStore>(width)), width_(width) {}
  std::unique_ptr<RowCache> clone() const override { return std::make_unique<BeamCache>(*this); }
  int64_t bytes() const override { return store_->bytes(); }

  void add_token() {
    newest_ = store_->take();
    keys_.push_back(newest_);
    values_.push_back(newest_ + width_);
  }
  void write(int64_t at, const float* key, const float* value, int64_t count) {
    std::copy_n(key, count, newest_ + at);
    std::copy_n(value, count, newest_ + width_ + at);
  }
  const std::vector<const float*>& keys() const { return keys_; }
  const std::vector<const float*>& values() const { return values_; }

 private:
  std::shared_ptr<TokenStore> store_;
  int64_t width_;  // of all heads
  float* newest_ = nullptr;
  std::vector<const float*> keys_, values_;  // by token
};

class CompiledCausalAttention : public CompiledMixing {
 public:
  explicit CompiledCausalAttention(nn::CompiledProjections maps) { maps_ = maps; }

  // Rows of a search begin with an empty sentence and are not kept.
  std::unique_ptr<RowCache> open(const State& /*state*/, int64_t /*level*/,
                                 int64_t tokens_seen) const override {
    RONDO_ASSERT(tokens_seen == 0);
    return std::make_unique<BeamCache>(maps_.heads * maps_.head_width);
  }
  void save(const RowCache& /*cache*/, int64_t /*level*/, int64_t /*tokens_seen*/,
            State& /*state*/) const override {
    throw Error(ExitCode::failure, "a search cannot be saved");
  }
  void begin_token(RowCache& cache, int64_t /*tokens_seen*/) const override {
    static_cast<BeamCache&>(cache).add_token();
  }
  void attend(const HeadStep& step, RowCache& row) const override {
    auto& cache = static_cast<BeamCache&>(row);
    const int64_t d = maps_.head_width;
    cache.write(step.head * d, step.k, step.v, d);
    kernels::ScatteredQuery query;
    query.q = step.q;
    query.keys = cache.keys().data();
    query.values = cache.values().data();
    query.offset = step.head * d;
    query.count = step.tokens_seen + 1;
    query.width = d;
    query.scale = static_cast<float>(inverse_root(d));
    kernels::attend_one(query, with_room(*step.scratch, query.count), step.out);
  }
};

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

std::shared_ptr<const CompiledMixing> SelfAttention::compile(nn::WeightPacker& packer) const {
  if (!options_.causal) return TokenMixing::compile(packer);
  return std::make_shared<CompiledCausalAttention>(projections_->compile(packer));
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
  const Tensor q = projections_->query(u, u, {}, scope);  // [B, H, T, d]
  return projections_->output(nn::merge_heads(nn::attend(q, k, v, how, is_training(), scope)),
                              scope);
}

std::vector<std::shared_ptr<const CrossMemory>> CrossAttention::memories(
    const Tensor& memory, const std::vector<int64_t>& lengths) const {
  const auto made = projections_->keys_and_values(memory, Scope());
  // As [B, S, H, d] each, side by side so that one tensor keeps both.
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
      std::make_shared<nn::FeedForward>(shape, nn::torch_laws(tokens), nn::torch_laws(hidden)));
}

Tensor TokenFeedForward::forward(const MixingInput& in, Call& /*call*/, const Scope& scope) {
  const Tensor y = feed_forward_->forward(in.u.transpose(1, 2), Tensor(), scope);  // [B, D, T]
  return y.transpose(1, 2);
}

}  // namespace rondo
