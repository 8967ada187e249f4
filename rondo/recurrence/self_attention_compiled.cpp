// Self-attention and the Mixer's feed-forward for inference: over whole sequences and, if causal,
// token by token for beam search.
#include <algorithm>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/kernels/attention.h"
#include "rondo/kernels/decode_attention.h"
#include "rondo/recurrence/self_attention.h"

namespace rondo {
namespace {

float score_factor(int64_t head_width) { return 1.0F / std::sqrt(static_cast<float>(head_width)); }

// Keys and values of the tokens of beam search rows. They are never moved: a row that continues
// another one only copies the pointers.
class TokenStore {
 public:
  explicit TokenStore(int64_t width) : width_(width) {}
  // Space for a key and a value, [width] each.
  float* take() {
    if (used_ == kTokens || chunks_.empty()) {
      chunks_.push_back(at::empty({2 * kTokens * width_}));  // in large pages, reused
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

// One row of a beam search at one level; copies share the tokens they have in common.
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

  // Beam search rows start with an empty sentence and are not saved.
  std::unique_ptr<RowCache> open(const State& /*state*/, int64_t /*level*/,
                                 int64_t tokens_seen) const override {
    RONDO_ASSERT(tokens_seen == 0);
    return std::make_unique<BeamCache>(maps_.heads * maps_.head_width);
  }
  void save(const RowCache& /*cache*/, int64_t /*level*/, int64_t /*tokens_seen*/,
            State& /*state*/) const override {
    throw Error(ExitCode::failure, "the state of a beam search cannot be saved");
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
    query.scale = score_factor(d);
    kernels::attend_one(query, with_room(*step.scratch, query.count), step.out);
  }
};

// ---- whole sequences ----------------------------------------------------------------------------

class AttentionOverSequences : public SequenceMixing {
 public:
  AttentionOverSequences(nn::CompiledProjections maps, std::string permutation)
      : maps_(maps),
        permutation_(std::move(permutation)),
        factors_(static_cast<size_t>(maps.heads), score_factor(maps.head_width)) {}

  const nn::CompiledProjections* maps() const override { return &maps_; }
  SlicePlan slice(int64_t loop, int64_t groups) const override {
    return slice_plan(permutation_, loop, groups);
  }
  // Groups and heads are divided among members; if these are few and uneven, queries too.
  void mix(const Input& in, const kernels::Member& member) const override {
    const int64_t groups = in.shape.sequences * in.groups;
    const int64_t units = groups * maps_.heads;
    const int64_t parts = units % member.count == 0 || units >= 8 * member.count ? 1 : member.count;
    const auto [first, last] = member.share(units * parts);
    for (int64_t i = first; i < last; ++i) {
      attend(in, i / parts / maps_.heads, i / parts % maps_.heads, i % parts, parts);
    }
  }

 private:
  void attend(const Input& in, int64_t group, int64_t head, int64_t part, int64_t parts) const {
    const int64_t tokens = in.shape.tokens / in.groups;
    const int64_t first = tokens * part / parts;
    const int64_t row = group * tokens;
    const int64_t column = head * maps_.head_width;
    kernels::AttentionProblem p;
    p.batch = p.heads = 1;
    p.queries = p.keys = tokens;
    p.width = maps_.head_width;
    p.q = {in.q[row + first] + column, {0, 0, in.q.stride}};
    p.k = {in.k[row] + column, {0, 0, in.k.stride}};
    p.v = {in.v[row] + column, {0, 0, in.v.stride}};
    p.factor = factors_.data();
    if (in.shape.mask != nullptr) p.mask = in.shape.mask + row;
    const kernels::Sink out = {in.out[row + first] + column, {0, 0, in.out.stride}};
    p.queries = tokens * (part + 1) / parts - first;
    kernels::attention_forward(p, out, /*lse=*/nullptr, /*threads=*/1);
  }

  nn::CompiledProjections maps_;
  std::string permutation_;
  std::vector<float> factors_;  // [H]
};

class FeedForwardOverSequences : public SequenceMixing {
 public:
  explicit FeedForwardOverSequences(const nn::CompiledFeedForward& maps) : maps_(maps) {}

  // A few channels at a time, transposed to rows of tokens and back.
  void mix(const Input& in, const kernels::Member& member) const override {
    constexpr int64_t kChannels = 32;
    const kernels::Member alone;
    const int64_t tokens = in.shape.tokens;
    const int64_t width = in.q.stride;  // of rows in memory: channels and padding
    nn::RowBuffer& turned = in.scratch->turned;
    nn::RowBuffer& hidden = in.scratch->turned_hidden;
    turned.resize(kChannels, tokens);
    hidden.resize(kChannels, maps_.up.w.out);
    const int64_t pieces = (width + kChannels - 1) / kChannels;
    const auto [first, last] = member.share(in.shape.sequences * pieces);
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i / pieces * tokens;
      const int64_t channel = i % pieces * kChannels;
      const int64_t count = std::min(kChannels, width - channel);
      const nn::Rows rows = turned.rows(count);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t c = 0; c < count; ++c) rows[c][t] = in.q[row + t][channel + c];
      }
      const nn::Rows h = hidden.rows(count);
      maps_.hidden(rows, {}, h, alone);
      maps_.down.forward(h, rows, alone);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t c = 0; c < count; ++c) in.out[row + t][channel + c] = rows[c][t];
      }
    }
  }

 private:
  nn::CompiledFeedForward maps_;
};

}  // namespace

std::shared_ptr<const CompiledMixing> TokenMixing::compile(nn::WeightPacker& /*packer*/) const {
  throw Error(ExitCode::bad_input,
              "this network needs whole sequences and cannot decode token by token");
}

std::shared_ptr<const SequenceMixing> TokenMixing::compile_sequences(
    nn::WeightPacker& /*packer*/) const {
  throw Error(ExitCode::bad_input,
              "this network decodes token by token and cannot process whole sequences");
}

std::shared_ptr<const CompiledMixing> SelfAttention::compile(nn::WeightPacker& packer) const {
  if (!options_.causal) return TokenMixing::compile(packer);
  return std::make_shared<CompiledCausalAttention>(projections_->compile(packer));
}

std::shared_ptr<const SequenceMixing> SelfAttention::compile_sequences(
    nn::WeightPacker& packer) const {
  if (options_.causal) return TokenMixing::compile_sequences(packer);
  return std::make_shared<AttentionOverSequences>(projections_->compile(packer),
                                                  options_.permutation);
}

std::shared_ptr<const SequenceMixing> TokenFeedForward::compile_sequences(
    nn::WeightPacker& packer) const {
  return std::make_shared<FeedForwardOverSequences>(feed_forward_->compile(packer));
}

}  // namespace rondo
