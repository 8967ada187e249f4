// Token mixing as decoding runs it: one new token of each of a few documents, which attend to what
// their levels keep of the past. Each kind of TokenMixing compiles itself into one of these, beside
// a cache in the layout it reads.
//
// A CompiledMixing is immutable and shared by all threads. A cache belongs to one document at one
// level; attend() may run for several heads of it at once, end_blocks() is run by all members of a
// team, everything else by one caller alone.
#pragma once

#include <memory>

#include "rondo/nn/attention.h"
#include "rondo/recurrence/state.h"

namespace rondo {

// Keys and values of recurrent states, or of a sentence, as attention reads them.
struct StateHeads {
  const float* keys = nullptr;
  const float* values = nullptr;
  int64_t count = 0;
  int64_t head_stride = 0;  // from one head to the next
  int64_t stride = 0;       // from one state to the next
};

// What one level keeps of one document's past.
class RowCache {
 public:
  RowCache() = default;
  RowCache(const RowCache&) = default;
  RowCache& operator=(const RowCache&) = delete;
  virtual ~RowCache() = default;
  virtual std::unique_ptr<RowCache> clone() const = 0;
  // Recurrent states that levels without their own read too (feedback); null: there are none.
  virtual const StateHeads* states() const { return nullptr; }
  virtual int64_t bytes() const = 0;
};

// Room for `count` numbers in a vector that only grows.
inline float* with_room(std::vector<float>& scratch, int64_t count) {
  if (scratch.size() < static_cast<size_t>(count)) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

// One head of one row, of the token at hand. The mixing may change q, k and v.
struct HeadStep {
  int64_t head = 0;
  int64_t tokens_seen = 0;  // before this one
  float* q = nullptr;       // [d]
  float* k = nullptr;
  float* v = nullptr;
  float* state_q = nullptr;            // second queries; null where the mixing has none
  const StateHeads* states = nullptr;  // what they read
  float* out = nullptr;                // [d]
  float* state_out = nullptr;
  std::vector<float>* scratch = nullptr;  // of the thread
};

// One member's room for what happens at the end of blocks, made once and used again.
struct BlockScratch {
  std::vector<RowCache*> rows;
  nn::RowBuffer states, u, heads, attended, hidden, update, forget, input;
};

// What a decoder reads of one sentence with one set of weights: shared by all its rows.
struct CrossMemory {
  Tensor kept;  // whose memory the pointers show to
  StateHeads heads;
};

class CompiledMixing {
 public:
  virtual ~CompiledMixing() = default;

  // The cache of a row that has seen `tokens_seen` tokens, from what `level` left in `state` (of
  // one row; nothing: a new document). save() is its inverse.
  virtual std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                         int64_t tokens_seen) const = 0;
  virtual void save(const RowCache& cache, int64_t level, int64_t tokens_seen,
                    State& state) const = 0;

  // Before a token, when `tokens_seen` have been read.
  virtual void begin_token(RowCache& /*cache*/, int64_t /*tokens_seen*/) const {}
  virtual void attend(const HeadStep& step, RowCache& cache) const = 0;
  // Tokens of a block, at whose end there is work to do; 0: never.
  virtual int64_t block() const { return 0; }
  // That work, for the rows whose block ends with the token at hand. All members call this
  // together, when none of them attends any more; caches are ready when all have returned.
  virtual void end_blocks(const std::vector<RowCache*>& /*rows*/, BlockScratch& /*scratch*/,
                          const kernels::Member& /*member*/) const {}

  const nn::CompiledProjections& maps() const { return maps_; }
  // Second queries, for recurrent states; there() says whether the mixing reads any.
  const nn::CompiledLinear& state_query() const { return state_query_; }

 protected:
  nn::CompiledProjections maps_;
  nn::CompiledLinear state_query_;
};

}  // namespace rondo
