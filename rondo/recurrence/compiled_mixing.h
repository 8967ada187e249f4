// Token mixing for decoding: one new token of each of a few documents, attending to the caches of
// its level. Each kind of TokenMixing compiles itself into one of these, with a cache in the layout
// it needs.
//
// A CompiledMixing is immutable and shared by all threads. A cache belongs to one document at one
// level; attend() may run for several of its heads concurrently, end_blocks() is run by all members
// of a team, everything else by one caller alone.
#pragma once

#include <memory>

#include "rondo/nn/attention.h"
#include "rondo/recurrence/state.h"

namespace rondo {

// Keys and values of recurrent states, or of a sentence, for attention.
struct StateHeads {
  const float* keys = nullptr;
  const float* values = nullptr;
  int64_t count = 0;
  int64_t head_stride = 0;  // from one head to the next
  int64_t stride = 0;       // from one state to the next
};

// One level's cache of one document.
class RowCache {
 public:
  RowCache() = default;
  RowCache(const RowCache&) = default;
  RowCache& operator=(const RowCache&) = delete;
  virtual ~RowCache() = default;
  virtual std::unique_ptr<RowCache> clone() const = 0;
  // Recurrent states, also read by levels without their own (feedback); null: there are none.
  virtual const StateHeads* states() const { return nullptr; }
  virtual int64_t bytes() const = 0;
};

// Space for `count` floats in a vector that only grows.
inline float* with_room(std::vector<float>& scratch, int64_t count) {
  if (scratch.size() < static_cast<size_t>(count)) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

// One head of one row, for the current token. The mixing may modify q, k and v.
struct HeadStep {
  int64_t head = 0;
  int64_t tokens_seen = 0;  // before this one
  float* q = nullptr;       // [d]
  float* k = nullptr;
  float* v = nullptr;
  float* state_q = nullptr;            // second queries; null where the mixing has none
  const StateHeads* states = nullptr;  // what the second queries attend to
  float* out = nullptr;                // [d]
  float* state_out = nullptr;
  std::vector<float>* scratch = nullptr;  // of the thread
};

// One member's buffers for the end of blocks, reused between steps.
struct BlockScratch {
  std::vector<RowCache*> rows;
  nn::RowBuffer states, u, heads, attended, hidden, update, forget, input;
};

// Cross-attention keys and values of one sentence by one set of weights, shared by all its rows.
struct CrossMemory {
  Tensor kept;  // owns the memory that `heads` points to
  StateHeads heads;
};

class CompiledMixing {
 public:
  virtual ~CompiledMixing() = default;

  // The cache of a row that has seen `tokens_seen` tokens, from the tensors of `level` in `state`
  // (of one row; empty: a new document). save() is its inverse.
  virtual std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                         int64_t tokens_seen) const = 0;
  virtual void save(const RowCache& cache, int64_t level, int64_t tokens_seen,
                    State& state) const = 0;

  // Called before a token, after `tokens_seen` earlier ones.
  virtual void begin_token(RowCache& /*cache*/, int64_t /*tokens_seen*/) const {}
  virtual void attend(const HeadStep& step, RowCache& cache) const = 0;
  // Tokens per block if there is work to do at its end; 0: there is none.
  virtual int64_t block() const { return 0; }
  // That work, for the rows whose block ends with the current token. All members call this
  // together, after all have finished attending; caches are ready when all have returned.
  virtual void end_blocks(const std::vector<RowCache*>& /*rows*/, BlockScratch& /*scratch*/,
                          const kernels::Member& /*member*/) const {}

  const nn::CompiledProjections& maps() const { return maps_; }
  // Second queries, for recurrent states; there() tells whether the mixing reads any.
  const nn::CompiledLinear& state_query() const { return state_query_; }

 protected:
  nn::CompiledProjections maps_;
  nn::CompiledLinear state_query_;
};

}  // namespace rondo
