// WindowAttention as decoding runs it (compiled_mixing.h), in two layouts of the past: a window of
// fixed size, and, without a window, keys and values that grow with the document.
#pragma once

#include "rondo/kernels/decode_attention.h"
#include "rondo/recurrence/compiled_mixing.h"

namespace rondo {

constexpr float kUnitEpsilon = 1e-6F;  // as WindowAttention::unit_length

// What both layouts share.
struct WindowWeights {
  nn::CompiledProjections maps;
  nn::CompiledLinear state_query;      // not there: reads no states
  const float* scale = nullptr;        // [H]
  const float* state_scale = nullptr;  // [H] or null
  // Relative bias: of the window's keys, the furthest first [H, W or W + 1]; without a window by
  // distance into the past [H, distances], where all further keys have the last one.
  const float* bias = nullptr;
  int64_t distances = 0;
  int64_t window = 0;  // 0 = none
  bool attend_self = false;
  bool mask_empty_cache = false;
  bool normalize = true;
  bool rounded = false;  // keys and values are read in bf16
};

// Keys and values stand in a buffer of two windows: the window behind the current token is always
// one contiguous piece, and once per block the second half moves to the first.
class WindowCache : public RowCache {
 public:
  WindowCache(int64_t heads, int64_t window, int64_t head_width, bool rounded);
  std::unique_ptr<RowCache> clone() const override;
  int64_t bytes() const override;

  // Rounds what stands before `end`.
  void round(int64_t head, int64_t end);
  kernels::RoundedHead rounded_head(int64_t head) const;

  Tensor keys, values;  // [1, H, 2W, d]; the current token's place is W + phase
  Tensor rounded;       // the same in bf16 as kernels read it; undefined: fp32 is read

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
  // The last `count` keys and values, of the place after `tokens_seen` tokens, to a state.
  void save_keys(const WindowCache& cache, int64_t level, int64_t tokens_seen, int64_t count,
                 State& state) const;
  // The window has been left behind; of one head.
  void end_block(WindowCache& cache, int64_t head) const;
  const WindowWeights& weights() const { return weights_; }
  // A WindowCache, or what extends it, for a new document.
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

// No window: every earlier token and itself.
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
