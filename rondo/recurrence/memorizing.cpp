// The nearest-neighbour memory.
#include "rondo/recurrence/memorizing.h"

#include <algorithm>

namespace rondo {

MemorizingAttention::MemorizingAttention(const WindowOptions& options, int64_t memory,
                                         int64_t neighbours)
    : WindowAttention(options), memory_size_(memory), neighbours_(neighbours) {
  gate_ = parameter("gate", {options.shape.heads}, nn::constant(0.0));
}

Tensor MemorizingAttention::recall(const Tensor& q, const Memory& memory,
                                   const Scope& scope) const {
  const int64_t pairs = memory.keys.size(1);
  if (pairs == 0) return at::zeros_like(q);
  const Tensor keys = memory.keys.transpose(1, 2);  // [B, H, M', d]
  const Tensor values = memory.values.transpose(1, 2);
  Tensor scores = nn::matmul(q.detach(), keys.transpose(2, 3), scope / "scores");  // [B, H, T, M']
  const int64_t nearest = std::min(neighbours_, pairs);
  scope.multiply_adds(2.0 * static_cast<double>(q.numel() * nearest));  // their scores and values
  if (q.is_meta()) return at::empty_like(q);
  const Tensor exists =
      at::arange(pairs, at::kLong).unsqueeze(0).ge(pairs - memory.filled.unsqueeze(1));  // [B, M']
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
  return (near_values * p.unsqueeze(-1)).sum(3);                                   // [B, H, T, d]
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
  // Whole blocks; the memory may still hold some of documents before this one in the same rows.
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

Tensor MemorizingAttention::forward(const MixingInput& in, Call& call, const Scope& scope) {
  Tokens t = project(in, scope);
  attach_cache(t, in.level, call);
  const Tensor local = attend_window(t, in.level, call, scope);  // [B, H, T, d]
  State& state = *call.state;
  Memory memory = {state.get(level_key(in.level, "memory.keys")),
                   state.get(level_key(in.level, "memory.values")),
                   state.get(level_key(in.level, "memory.filled"))};
  if (!memory.keys.defined()) {
    const Shape none = {t.k.size(0), 0, t.k.size(1), t.k.size(3)};
    memory = {at::zeros(none, t.k.options()), at::zeros(none, t.k.options()),
              at::zeros({t.k.size(0)}, at::kLong)};
  }
  const int64_t window = options().window;
  int64_t phase = call.behind % window;
  int64_t block = t.all_keys.size(2) - t.q.size(2) - phase;  // where it starts among all keys
  std::vector<Tensor> recalled;
  for (int64_t done = 0; done < t.q.size(2);) {
    const int64_t count = std::min(window - phase, t.q.size(2) - done);
    recalled.push_back(recall(t.q.narrow(2, done, count), memory, scope / "memory"));
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
  keep(t, window + phase, in.level, call);
  const Tensor g = at::sigmoid(gate_).view({1, -1, 1, 1});
  return output(local * (1.0 - g) + at::cat(recalled, 2) * g, scope);
}

}  // namespace rondo
