// Decoding with a window, and without one.
#include "rondo/recurrence/compiled_window.h"

#include <algorithm>

#include "rondo/kernels/packed.h"
#include "rondo/recurrence/mixing.h"

namespace rondo {
namespace {

float* head_data(const Tensor& buffer, int64_t head) {
  return buffer.data_ptr<float>() + head * buffer.stride(1);
}

// ---- the growing cache ----

class GrowingCache : public RowCache {
 public:
  std::unique_ptr<RowCache> clone() const override {
    auto copy = std::make_unique<GrowingCache>();
    copy->keys = keys.clone();
    copy->values = values.clone();
    return copy;
  }
  int64_t bytes() const override {
    return static_cast<int64_t>(keys.storage().nbytes() + values.storage().nbytes());
  }
  Tensor keys, values;  // [1, H, room, d]
};

}  // namespace

// ---- the window's buffers ----

WindowCache::WindowCache(int64_t heads, int64_t window, int64_t head_width, bool in_bf16) {
  keys = at::zeros({1, heads, 2 * window, head_width});
  values = at::zeros_like(keys);
  if (!in_bf16) return;
  rounded = at::zeros({heads, 2, kernels::rounded_size(2 * window, head_width)}, at::kBFloat16);
}

WindowCache::WindowCache(const WindowCache& other)
    : RowCache(other), keys(other.keys.clone()), values(other.values.clone()) {
  if (other.rounded.defined()) rounded = other.rounded.clone();
}

std::unique_ptr<RowCache> WindowCache::clone() const {
  return std::unique_ptr<RowCache>(new WindowCache(*this));
}

int64_t WindowCache::bytes() const {
  const size_t rounded_bytes = rounded.defined() ? rounded.nbytes() : 0;
  return static_cast<int64_t>(keys.nbytes() + values.nbytes() + rounded_bytes);
}

kernels::RoundedHead WindowCache::rounded_head(int64_t head) const {
  auto* numbers = reinterpret_cast<kernels::Bf16*>(rounded.data_ptr<at::BFloat16>());
  const int64_t size = rounded.size(2);
  return {numbers + 2 * head * size, numbers + (2 * head + 1) * size, keys.size(3)};
}

void WindowCache::round(int64_t head, int64_t end) {
  for (int64_t place = 0; place < end; ++place) {
    const int64_t at = place * keys.size(3);
    kernels::put_rounded(rounded_head(head), place, head_data(keys, head) + at,
                         head_data(values, head) + at);
  }
}

// ---- attention ----

CompiledWindow::CompiledWindow(const WindowWeights& weights) : weights_(weights) {
  maps_ = weights.maps;
  state_query_ = weights.state_query;
}

std::unique_ptr<RowCache> CompiledWindow::open(const State& state, int64_t level,
                                               int64_t tokens_seen) const {
  auto cache = new_cache<WindowCache>();
  fill(*cache, state, level, tokens_seen);
  return cache;
}

void CompiledWindow::fill(WindowCache& cache, const State& state, int64_t level,
                          int64_t tokens_seen) const {
  const Tensor keys = state.get(level_key(level, "keys"));  // [1, W or W + phase, H, d]
  if (!keys.defined()) return;
  const int64_t end = weights_.window + tokens_seen % weights_.window;
  // The state holds more than fit if all rows of a batch were reset mid-block.
  const int64_t count = std::min(keys.size(1), end);
  const auto copy_last = [&](Tensor& buffer, const Tensor& kept) {
    buffer.narrow(2, end - count, count)
        .copy_(kept.narrow(1, kept.size(1) - count, count).transpose(1, 2));
  };
  copy_last(cache.keys, keys);
  copy_last(cache.values, state.get(level_key(level, "values")));
  for (int64_t h = 0; weights_.rounded && h < maps_.heads; ++h) cache.round(h, end);
}

void CompiledWindow::save_keys(const WindowCache& cache, int64_t level, int64_t tokens_seen,
                               int64_t count, State& state) const {
  const int64_t end = weights_.window + tokens_seen % weights_.window;
  const auto last_of = [&](const Tensor& buffer) {
    return buffer.narrow(2, end - count, count).transpose(1, 2).contiguous();
  };
  state.set(level_key(level, "keys"), last_of(cache.keys));
  state.set(level_key(level, "values"), last_of(cache.values));
}

void CompiledWindow::save(const RowCache& cache, int64_t level, int64_t tokens_seen,
                          State& state) const {
  save_keys(static_cast<const WindowCache&>(cache), level, tokens_seen, weights_.window, state);
}

void CompiledWindow::attend(const HeadStep& step, RowCache& row) const {
  auto& cache = static_cast<WindowCache&>(row);
  const int64_t d = maps_.head_width;
  if (weights_.normalize) {
    kernels::normalize_one(step.q, d, kUnitEpsilon);
    kernels::normalize_one(step.k, d, kUnitEpsilon);
  }
  const int64_t place = weights_.window + step.tokens_seen % weights_.window;
  std::copy_n(step.k, d, head_data(cache.keys, step.head) + place * d);
  std::copy_n(step.v, d, head_data(cache.values, step.head) + place * d);
  if (weights_.rounded) {
    kernels::put_rounded(cache.rounded_head(step.head), place, step.k, step.v);
  }
  attend_window(step, cache);
  if (step.state_q != nullptr) attend_states(step);
}

void CompiledWindow::attend_window(const HeadStep& step, const WindowCache& cache) const {
  const int64_t d = maps_.head_width;
  const int64_t phase = step.tokens_seen % weights_.window;
  const int64_t seen = weights_.window + (weights_.attend_self ? 1 : 0);
  // Number of masked keys from before the start of the document.
  const int64_t hidden =
      weights_.mask_empty_cache ? std::max<int64_t>(0, weights_.window - step.tokens_seen) : 0;
  const auto ask = [&](auto query) {
    query.q = step.q;
    query.count = seen - hidden;
    query.scale = weights_.scale[step.head];
    query.bias = weights_.bias + step.head * seen + hidden;
    float* scores = with_room(*step.scratch, query.count + kernels::kRoundedScores);
    kernels::attend_one(query, scores, step.out);
  };
  if (weights_.rounded) {
    kernels::RoundedQuery query;
    query.head = cache.rounded_head(step.head);
    query.first = phase + hidden;
    return ask(query);
  }
  kernels::OneQuery query;
  query.keys = head_data(cache.keys, step.head) + (phase + hidden) * d;
  query.values = head_data(cache.values, step.head) + (phase + hidden) * d;
  query.stride = d;
  query.width = d;
  ask(query);
}

void CompiledWindow::attend_states(const HeadStep& step) const {
  if (weights_.normalize) kernels::normalize_one(step.state_q, maps_.head_width, kUnitEpsilon);
  const StateHeads& states = *step.states;
  kernels::OneQuery query;
  query.q = step.state_q;
  query.keys = states.keys + step.head * states.head_stride;
  query.values = states.values + step.head * states.head_stride;
  query.stride = states.stride;
  query.count = states.count;
  query.width = maps_.head_width;
  query.scale = weights_.state_scale[step.head];
  kernels::attend_one(query, with_room(*step.scratch, states.count), step.state_out);
}

void CompiledWindow::end_block(WindowCache& cache, int64_t head) const {
  const int64_t window = weights_.window;
  const int64_t numbers = window * maps_.head_width;
  for (const Tensor* buffer : {&cache.keys, &cache.values}) {
    std::copy_n(head_data(*buffer, head) + numbers, numbers, head_data(*buffer, head));
  }
  if (!weights_.rounded) return;
  if (window % kernels::kPanel != 0) return cache.round(head, window);
  kernels::move_rounded(cache.rounded_head(head), window);
}

void CompiledWindow::end_blocks(const std::vector<RowCache*>& rows, BlockScratch& /*scratch*/,
                                const kernels::Member& member) const {
  const auto [first, last] = member.share(static_cast<int64_t>(rows.size()) * maps_.heads);
  for (int64_t i = first; i < last; ++i) {
    end_block(static_cast<WindowCache&>(*rows[static_cast<size_t>(i / maps_.heads)]),
              i % maps_.heads);
  }
}

// ---- without a window ----

CompiledGrowingAttention::CompiledGrowingAttention(const WindowWeights& weights)
    : weights_(weights) {
  maps_ = weights.maps;
}

std::unique_ptr<RowCache> CompiledGrowingAttention::open(const State& state, int64_t level,
                                                         int64_t tokens_seen) const {
  constexpr int64_t kSpare = 64;
  auto cache = std::make_unique<GrowingCache>();
  const auto filled = [&](const char* name) {
    Tensor buffer = at::empty({1, maps_.heads, tokens_seen + kSpare, maps_.head_width});
    const Tensor kept = state.get(level_key(level, name));  // [1, ≥ tokens, H, d]
    if (kept.defined()) {  // extra keys belong to earlier documents of the same row
      buffer.narrow(2, 0, tokens_seen)
          .copy_(kept.narrow(1, kept.size(1) - tokens_seen, tokens_seen).transpose(1, 2));
    }
    return buffer;
  };
  cache->keys = filled("keys");
  cache->values = filled("values");
  return cache;
}

void CompiledGrowingAttention::save(const RowCache& row, int64_t level, int64_t tokens_seen,
                                    State& state) const {
  const auto& cache = static_cast<const GrowingCache&>(row);
  const auto seen_of = [&](const Tensor& buffer) {
    return buffer.narrow(2, 0, tokens_seen).transpose(1, 2).contiguous();
  };
  state.set(level_key(level, "keys"), seen_of(cache.keys));
  state.set(level_key(level, "values"), seen_of(cache.values));
}

void CompiledGrowingAttention::begin_token(RowCache& row, int64_t tokens_seen) const {
  auto& cache = static_cast<GrowingCache&>(row);
  if (tokens_seen < cache.keys.size(2)) return;
  for (Tensor* buffer : {&cache.keys, &cache.values}) {
    const Tensor wider = at::empty({1, maps_.heads, 2 * tokens_seen, maps_.head_width});
    for (int64_t h = 0; h < maps_.heads; ++h) {
      std::copy_n(head_data(*buffer, h), tokens_seen * maps_.head_width, head_data(wider, h));
    }
    *buffer = wider;
  }
}

void CompiledGrowingAttention::attend(const HeadStep& step, RowCache& row) const {
  auto& cache = static_cast<GrowingCache&>(row);
  const int64_t d = maps_.head_width;
  if (weights_.normalize) {
    kernels::normalize_one(step.q, d, kUnitEpsilon);
    kernels::normalize_one(step.k, d, kUnitEpsilon);
  }
  float* keys = head_data(cache.keys, step.head);
  float* values = head_data(cache.values, step.head);
  std::copy_n(step.k, d, keys + step.tokens_seen * d);
  std::copy_n(step.v, d, values + step.tokens_seen * d);
  const int64_t count = step.tokens_seen + 1;
  float* scores = with_room(*step.scratch, 2 * count);
  float* bias = scores + count;
  const float* by_distance = weights_.bias + step.head * weights_.distances;
  for (int64_t j = 0; j < count; ++j) {
    bias[j] = by_distance[std::min(count - 1 - j, weights_.distances - 1)];
  }
  kernels::OneQuery query;
  query.q = step.q;
  query.keys = keys;
  query.values = values;
  query.stride = d;
  query.count = count;
  query.width = d;
  query.scale = weights_.scale[step.head];
  query.bias = bias;
  kernels::attend_one(query, scores, step.out);
}

}  // namespace rondo
