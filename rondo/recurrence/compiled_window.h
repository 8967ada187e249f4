// WindowAttention for decoding (compiled_mixing.h), with two cache layouts: a window of fixed size
// and, without a window, keys and values that grow with the document.
#pragma once

#include "rondo/kernels/decode_attention.h"
#include "rondo/recurrence/compiled_mixing.h"

namespace rondo {

constexpr float kUnitEpsilon = 1e-6F;  // as WindowAttention::unit_length

// Shared by both layouts.
struct WindowWeights {
  nn::CompiledProjections maps;
  nn::CompiledLinear state_query;      // there() is false: reads no states
  const float* scale = nullptr;        // [H]
  const float* state_scale = nullptr;  // [H] or null
  // Relative bias: of the window's keys, furthest first [H, W or W + 1]; without a window, by
  // distance into the past [H, distances], where keys further back use the last entry.
  const float* bias = nullptr;
  int64_t distances = 0;
  int64_t window = 0;  // 0 = none
  bool attend_self = false;
  bool mask_empty_cache = false;
  bool normalize = true;
  bool rounded = false;  // attention reads keys and values in bf16
};

// Keys and values are kept in a buffer of two windows: the window before the current token is
// always contiguous, and once per block the second half is moved to the first.
class WindowCache : public RowCache {
 public:
  WindowCache(int64_t heads, int64_t window, int64_t head_width, bool rounded);
  std::unique_ptr<RowCache> clone() const override;
  int64_t bytes() const override;

  // Rounds the keys and values before `end`.
  void round(int64_t head, int64_t end);
  kernels::RoundedHead rounded_head(int64_t head) const;

  Tensor keys, values;  // [1, H, 2W, d]; the current token is at W + phase
  Tensor rounded;       // the same in bf16, in the kernels' layout; undefined: fp32 is read

 protected:
  WindowCache(const WindowCache& other);
};

class CompiledWindow : public CompiledMixing {
 public:
  explicit CompiledWindow(const WindowWeights& weights);
  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t tokens_seen) const override;
  void save(const RowCache& cache, int64_t level, int64_t tokens_seen, State& state) const override;
  void attend(const HeadStep& step, RowCache& cache) const override;
  int64_t block() const override { return weights_.window; }
  void end_blocks(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                  const kernels::Member& member) const override;

 protected:
  // Fills the buffers from a state.
  void fill(WindowCache& cache, const State& state, int64_t level, int64_t tokens_seen) const;
  // Stores the last `count` keys and values after `tokens_seen` tokens in a state.
  void save_keys(const WindowCache& cache, int64_t level, int64_t tokens_seen, int64_t count,
                 State& state) const;
  // Moves one head's buffers on to the next block.
  void end_block(WindowCache& cache, int64_t head) const;
  const WindowWeights& weights() const { return weights_; }
  // A WindowCache, or a subclass, for a new document.
  template <class Cache>
  std::unique_ptr<Cache> new_cache() const {
    return std::make_unique<Cache>(maps_.heads, weights_.window, maps_.head_width,
                                   weights_.rounded);
  }

 private:
  void attend_window(const HeadStep& step, const WindowCache& cache) const;
  void attend_states(const HeadStep& step) const;

  WindowWeights weights_;
};

// No window: attends to all earlier tokens and the current one.
class CompiledGrowingAttention : public CompiledMixing {
 public:
  explicit CompiledGrowingAttention(const WindowWeights& weights);
  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t tokens_seen) const override;
  void save(const RowCache& cache, int64_t level, int64_t tokens_seen, State& state) const override;
  void begin_token(RowCache& cache, int64_t tokens_seen) const override;
  void attend(const HeadStep& step, RowCache& cache) const override;

 private:
  WindowWeights weights_;
};

}  // namespace rondo
