// BlockRecurrentAttention as decoding runs it (compiled_mixing.h): a window, and states that the
// recurrent cell rewrites when a block of W tokens is complete. The states of all rows whose blocks
// end with the same token go through the cell together, a few at a time, so that its weights are
// read once for many; members of the team share out states. A state has the same bits whatever the
// number of rows and members.
#pragma once

#include "rondo/nn/gate.h"
#include "rondo/recurrence/compiled_window.h"

namespace rondo {

// RecurrentCell's weights.
struct CompiledCell {
  nn::CompiledNorm norm;
  const float* identity = nullptr;  // state IDs [S, D], added after the norm; null: none
  nn::CompiledProjections maps;     // of states
  nn::CompiledLinear token_query;
  const float* scale = nullptr;        // of attention to states [H]
  const float* token_scale = nullptr;  // of attention to tokens [H]
  bool normalize = true;               // queries and keys have unit length
  bool tanh = false;                   // of what gates join to a state
  // Configurations: skip has the first gate, single the feed-forward with its gate, dual both.
  nn::CompiledGate attention_gate;
  nn::CompiledNorm feed_forward_norm;  // dual only
  nn::CompiledFeedForward feed_forward;
  nn::CompiledGate feed_forward_gate;
};

// The window, the states, and what tokens read of them.
class RecurrentCache : public WindowCache {
 public:
  using WindowCache::WindowCache;
  void make_states(int64_t count, int64_t width);
  std::unique_ptr<RowCache> clone() const override;
  const StateHeads* states() const override { return &heads_; }
  int64_t bytes() const override;

  Tensor state;                     // [S, D]
  Tensor state_keys, state_values;  // [H, S, d]

 private:
  RecurrentCache(const RecurrentCache& other);
  void show_heads();

  StateHeads heads_;
};

class CompiledBlockRecurrent : public CompiledWindow {
 public:
  // `initial`: of a new document [S, D].
  CompiledBlockRecurrent(const WindowWeights& weights, CompiledCell cell, Tensor initial);
  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t tokens_seen) const override;
  void save(const RowCache& cache, int64_t level, int64_t tokens_seen, State& state) const override;
  void end_blocks(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                  const kernels::Member& member) const override;

 private:
  // Some of the states of `rows`, counted through all of them: [first, first + count).
  struct Piece {
    const std::vector<RowCache*>& rows;
    int64_t first = 0;
    int64_t count = 0;
    BlockScratch& scratch;
  };
  void make_room(int64_t count, BlockScratch& scratch) const;
  // The member's states, a few at a time.
  template <class Work>
  void in_pieces(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                 const kernels::Member& member, const Work& work) const;
  // work(cache, state, at, number) for every row that has states in the piece: `number` states of
  // the cache from `state` on are those from `at` on of the piece.
  template <class Work>
  void by_row(const Piece& piece, const Work& work) const;

  // The states, and what maps see of them. [count, D]
  nn::Rows gather(const Piece& piece) const;
  nn::Rows normalized(const Piece& piece, const nn::Rows& states) const;
  // One map of u to rows of heads, as scores read them.
  nn::Rows project(const nn::CompiledLinear& map, const nn::Rows& u, bool normalize,
                   const Piece& piece) const;
  // What states, as u, find in states and in the tokens of two blocks. [count, 2 · H · d]
  nn::Rows attended(const nn::Rows& u, const Piece& piece) const;
  // The states after the block, in place.
  void update(const Piece& piece) const;
  // What tokens of the next block read of them.
  void read(const Piece& piece) const;

  CompiledCell cell_;
  Tensor initial_;
  int64_t states_;  // S
  int64_t width_;   // D
};

}  // namespace rondo
