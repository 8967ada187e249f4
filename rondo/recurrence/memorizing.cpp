// The nearest-neighbor memory.
#include "rondo/recurrence/memorizing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rondo/recurrence/time_mixing.h"

namespace rondo {

std::shared_ptr<TokenMixing> make_memorizing(const LanguageModelConfig& config, int64_t level) {
  if (level + 1 != config.time.memory_layer) return make_window(config, level);
  return std::make_shared<MemorizingAttention>(window_options(config, false),
                                               config.time.memory_size, config.time.neighbors);
}

MemorizingAttention::MemorizingAttention(const WindowOptions& options, int64_t memory,
                                         int64_t neighbors)
    : WindowAttention(options), memory_size_(memory), neighbors_(neighbors) {
  gate_ = parameter("gate", {options.shape.heads}, nn::constant(0.0));
}

Tensor MemorizingAttention::recall(const Tensor& q, const Memory& memory, int64_t phase,
                                   const Scope& scope) const {
  const int64_t pairs = memory.keys.size(1);
  if (pairs == 0) {
    const Tensor none = q.narrow(3, 0, 0);  // [B, H, T, 0]
    scope.record("probabilities", none);
    scope.record("distances", none);
    return at::zeros_like(q);
  }
  const Tensor keys = memory.keys.transpose(1, 2);  // [B, H, M', d]
  const Tensor values = memory.values.transpose(1, 2);
  Tensor scores = nn::matmul(q.detach(), keys.transpose(2, 3), scope / "scores");  // [B, H, T, M']
  const int64_t nearest = std::min(neighbors_, pairs);
  scope.multiply_adds(2.0 * static_cast<double>(q.numel() * nearest));  // scores and values
  if (q.is_meta()) return nn::shape_only(q.sizes().vec(), q);
  const Tensor exists = at::arange(pairs, memory.filled.options())
                            .unsqueeze(0)
                            .ge(pairs - memory.filled.unsqueeze(1));  // [B, M']
  scores = scores.masked_fill(exists.logical_not().unsqueeze(1).unsqueeze(1), -1e30);
  const Tensor index = std::get<1>(scores.topk(nearest, -1));  // [B, H, T, k]

  const Shape found = {q.size(0), q.size(1), q.size(2), index.size(3), q.size(3)};
  const Tensor flat = index.flatten(2).unsqueeze(-1).expand({-1, -1, -1, q.size(3)});
  const Tensor near_keys = keys.gather(2, flat).view(found);  // [B, H, T, k, d]
  const Tensor near_values = values.gather(2, flat).view(found);
  const Tensor real = exists.unsqueeze(1).expand({-1, q.size(1), -1}).gather(2, index.flatten(2));
  const Tensor near = (near_keys * q.unsqueeze(3)).sum(-1) * scale().view({1, -1, 1, 1});
  const Tensor found_real = real.view(near.sizes());
  const Tensor p =
      nn::softmax(near.masked_fill(found_real.logical_not(), -1e30), found_real);  // [B, H, T, k]
  scope.record("probabilities", p);
  if (scope.wants("distances")) {
    // Memory ends where the block starts. Meaningless where the probability is 0.
    const Tensor past = at::arange(phase, phase + q.size(2), index.options()).unsqueeze(1);
    scope.record("distances", past + pairs - index);
  }
  return (near_values * p.unsqueeze(-1)).sum(3);  // [B, H, T, d]
}

MemorizingAttention::Memory MemorizingAttention::store(const Memory& memory, const Tensor& keys,
                                                       const Tensor& values) const {
  const auto append = [&](const Tensor& old, const Tensor& fresh) {
    const Tensor all = at::cat({old, fresh.detach()}, 1);
    const int64_t kept = std::min(all.size(1), memory_size_);
    return all.narrow(1, all.size(1) - kept, kept);
  };
  Memory next;
  next.keys = append(memory.keys, keys);
  next.values = append(memory.values, values);
  next.filled = (memory.filled + keys.size(1)).clamp_max(next.keys.size(1));
  return next;
}

void MemorizingAttention::describe_state(int64_t level, const StatePlace& place,
                                         StateLayout& layout) const {
  const int64_t window = options().window;
  describe_keys(level, window + place.longest() % window, place, layout);
  // Whole blocks; the memory may still hold pairs of earlier documents in the same rows.
  StateEntry filled;
  filled.type = at::kLong;
  filled.shape = {place.rows()};
  filled.values = place.position.div(window, "floor").mul(window).clamp_max(memory_size_);
  StateEntry keys;
  keys.type = place.type;
  keys.shape = {place.rows(),
                {filled.values.max().item<int64_t>(), memory_size_},
                options().shape.heads,
                options().shape.head_width};
  StateEntry values = keys;
  values.like = level_key(level, "memory.keys");
  layout.add(level_key(level, "memory.keys"), keys);
  layout.add(level_key(level, "memory.values"), values);
  layout.add(level_key(level, "memory.filled"), filled);
}

Tensor MemorizingAttention::forward(const MixingInput& in, ForwardContext& context,
                                    const Scope& scope) {
  Tokens t = project(in, scope);
  attach_cache(t, in.level, context);
  const Tensor local = attend_window(t, in.level, context, scope);  // [B, H, T, d]
  State& state = *context.state;
  Memory memory = {state.get(level_key(in.level, "memory.keys")),
                   state.get(level_key(in.level, "memory.values")),
                   state.get(level_key(in.level, "memory.filled"))};
  if (!memory.keys.defined()) {
    const Shape none = {t.k.size(0), 0, t.k.size(1), t.k.size(3)};
    memory = {at::zeros(none, t.k.options()), at::zeros(none, t.k.options()),
              at::zeros({t.k.size(0)}, t.k.options().dtype(at::kLong))};
  }
  const int64_t window = options().window;
  int64_t phase = context.tokens_seen % window;
  int64_t block = t.all_keys.size(2) - t.q.size(2) - phase;  // start of the block in all_keys
  std::vector<Tensor> recalled;
  for (int64_t done = 0; done < t.q.size(2);) {
    const int64_t count = std::min(window - phase, t.q.size(2) - done);
    recalled.push_back(recall(t.q.narrow(2, done, count), memory, phase, scope / "memory"));
    done += count;
    phase += count;
    if (phase < window) break;
    memory = store(memory, t.all_keys.narrow(2, block, window).transpose(1, 2),
                   t.all_values.narrow(2, block, window).transpose(1, 2));
    phase = 0;
    block += window;
  }
  state.set(level_key(in.level, "memory.keys"), memory.keys);
  state.set(level_key(in.level, "memory.values"), memory.values);
  state.set(level_key(in.level, "memory.filled"), memory.filled);
  keep(t, window + phase, in.level, context);
  const Tensor g = at::sigmoid(gate_).view({1, -1, 1, 1});
  scope.record("memory_gate", g);
  return output(local * (1.0 - g) + at::cat(recalled, 2) * g, scope);
}

// ---- decoding ----

namespace {

// The window, and the memory as a ring buffer: once full, a new pair replaces the oldest.
class MemoryCache : public WindowCache {
 public:
  using WindowCache::WindowCache;
  void make_memory(int64_t size) {
    const Shape shape = {keys.size(1), size, keys.size(3)};
    memory_keys = at::empty(shape);
    memory_values = at::empty(shape);
  }
  std::unique_ptr<RowCache> clone() const override {
    auto copy = std::unique_ptr<MemoryCache>(new MemoryCache(*this));
    copy->memory_keys = memory_keys.clone();
    copy->memory_values = memory_values.clone();
    return copy;
  }
  int64_t bytes() const override {
    return WindowCache::bytes() + static_cast<int64_t>(memory_keys.nbytes() * 2);
  }

  int64_t size() const { return memory_keys.size(1); }
  int64_t filled() const { return std::min(stored, size()); }
  int64_t oldest() const { return stored > size() ? stored % size() : 0; }
  // Of the pair at `place`: 0 is the oldest.
  int64_t age(int64_t place) const { return (place - oldest() + size()) % size(); }
  // Appends pairs [H, n, d], oldest first; the last dimension must be contiguous.
  void store(const Tensor& more_keys, const Tensor& more_values) {
    const int64_t count = std::min(more_keys.size(1), size());
    const int64_t skipped = more_keys.size(1) - count;
    for (int64_t i = skipped; i < more_keys.size(1); ++i, ++stored) {
      put(more_keys, i, memory_keys);
      put(more_values, i, memory_values);
    }
  }
  // memory_keys or memory_values, oldest first: [1, n, H, d].
  Tensor in_order(const Tensor& ring) const {
    const Tensor all = ring.narrow(1, 0, filled());
    return all.roll(-oldest(), 1).transpose(0, 1).unsqueeze(0).contiguous();
  }

  Tensor memory_keys, memory_values;  // [H, M, d]
  int64_t stored = 0;                 // pairs ever stored, including overwritten ones

 private:
  // Copies entry i of every head to the place of the next pair.
  void put(const Tensor& from, int64_t i, Tensor& ring) const {
    for (int64_t h = 0; h < from.size(0); ++h) {
      std::copy_n(from.data_ptr<float>() + h * from.stride(0) + i * from.stride(1), from.size(2),
                  ring.data_ptr<float>() + h * ring.stride(0) + stored % size() * ring.stride(1));
    }
  }
};

class CompiledMemorizing : public CompiledWindow {
 public:
  CompiledMemorizing(const WindowWeights& weights, const float* gate, int64_t size,
                     int64_t neighbors)
      : CompiledWindow(weights), gate_(gate), size_(size), neighbors_(neighbors) {}

  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t tokens_seen) const override {
    auto cache = new_cache<MemoryCache>();
    fill(*cache, state, level, tokens_seen);
    cache->make_memory(size_);
    const Tensor filled = state.get(level_key(level, "memory.filled"));
    if (!filled.defined()) return cache;
    const auto newest = [&](const char* name) {
      const Tensor kept = state.get(level_key(level, name))[0];  // [M', H, d]
      const int64_t count = filled[0].item<int64_t>();
      return kept.narrow(0, kept.size(0) - count, count).transpose(0, 1);
    };
    cache->store(newest("memory.keys"), newest("memory.values"));
    return cache;
  }

  void save(const RowCache& row, int64_t level, int64_t tokens_seen, State& state) const override {
    const auto& cache = static_cast<const MemoryCache&>(row);
    const int64_t window = weights().window;
    save_keys(cache, level, tokens_seen, window + tokens_seen % window, state);
    state.set(level_key(level, "memory.keys"), cache.in_order(cache.memory_keys));
    state.set(level_key(level, "memory.values"), cache.in_order(cache.memory_values));
    state.set(level_key(level, "memory.filled"), at::full({1}, cache.filled(), at::kLong));
  }

  void attend(const HeadStep& step, RowCache& row) const override {
    CompiledWindow::attend(step, row);  // normalizes q in place
    const auto& cache = static_cast<const MemoryCache&>(row);
    const int64_t d = maps_.head_width;
    const float g = 1.0F / (1.0F + std::exp(-gate_[step.head]));
    std::vector<float> recalled(static_cast<size_t>(d));
    recall(step, cache, recalled.data());
    for (int64_t i = 0; i < d; ++i) {
      step.out[i] = step.out[i] * (1.0F - g) + recalled[static_cast<size_t>(i)] * g;
    }
  }

  void end_blocks(const std::vector<RowCache*>& rows, BlockScratch& /*scratch*/,
                  const kernels::Member& member) const override {
    const at::NoGradGuard no_grad;
    const int64_t window = weights().window;
    const auto [first, last] = member.share(static_cast<int64_t>(rows.size()));
    for (int64_t i = first; i < last; ++i) {
      auto& cache = static_cast<MemoryCache&>(*rows[static_cast<size_t>(i)]);
      cache.store(cache.keys[0].narrow(1, window, window),
                  cache.values[0].narrow(1, window, window));
      for (int64_t h = 0; h < maps_.heads; ++h) end_block(cache, h);
    }
  }

 private:
  // Attention to the nearest keys in memory.
  void recall(const HeadStep& step, const MemoryCache& cache, float* out) const {
    const int64_t pairs = cache.filled();
    const int64_t nearest = std::min(neighbors_, pairs);
    kernels::OneQuery all;
    all.q = step.q;
    all.stride = all.width = maps_.head_width;
    all.count = pairs;
    all.keys = cache.memory_keys.data_ptr<float>() + step.head * cache.memory_keys.stride(0);
    std::vector<float> scores(static_cast<size_t>(pairs));
    kernels::score_keys(all, scores.data());
    // By age, so that sums do not depend on where the ring buffer starts.
    std::vector<int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::nth_element(order.begin(), order.begin() + nearest, order.end(),
                     [&](int64_t a, int64_t b) {
                       const float x = scores[static_cast<size_t>(a)];
                       const float y = scores[static_cast<size_t>(b)];
                       return x != y ? x > y : cache.age(a) < cache.age(b);
                     });
    std::sort(order.begin(), order.begin() + nearest,
              [&](int64_t a, int64_t b) { return cache.age(a) < cache.age(b); });
    std::vector<const float*> places(static_cast<size_t>(2 * nearest));
    const float* values =
        cache.memory_values.data_ptr<float>() + step.head * cache.memory_values.stride(0);
    for (int64_t i = 0; i < nearest; ++i) {
      const int64_t at = order[static_cast<size_t>(i)] * all.stride;
      places[static_cast<size_t>(i)] = all.keys + at;
      places[static_cast<size_t>(nearest + i)] = values + at;
    }
    kernels::ScatteredQuery near;
    near.q = step.q;
    near.keys = places.data();
    near.values = places.data() + nearest;
    near.count = nearest;
    near.width = all.width;
    near.scale = weights().scale[step.head];
    kernels::attend_one(near, scores.data(), out);
  }

  const float* gate_;  // [H]
  int64_t size_;
  int64_t neighbors_;
};

}  // namespace

std::shared_ptr<const CompiledMixing> MemorizingAttention::compile(nn::WeightPacker& packer) const {
  return std::make_shared<CompiledMemorizing>(compile_weights(packer), packer.vector(gate_),
                                              memory_size_, neighbors_);
}

}  // namespace rondo
