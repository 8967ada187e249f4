// BlockRecurrentAttention for decoding (compiled_mixing.h): a window, and states that the recurrent
// cell updates when a block of W tokens is complete. The states of all rows whose blocks end in the
// same step go through the cell in batches, so that its weights are read once for many; the states
// are divided among the members of the team. Results are bit-identical for any number of rows and
// members.
#pragma once

#include "rondo/nn/gate.h"
#include "rondo/recurrence/compiled_window.h"

namespace rondo {

// RecurrentCell's weights.
struct CompiledCell {
  nn::CompiledNorm norm;
  const float* identity = nullptr;  // state IDs [S, D], added after the norm; null: none
  nn::CompiledProjections maps;     // of the states
  nn::CompiledLinear token_query;
  const float* scale = nullptr;        // of attention to states [H]
  const float* token_scale = nullptr;  // of attention to tokens [H]
  bool normalize = true;               // queries and keys have unit length
  bool tanh = false;                   // applied to updates before they are gated
  // Configurations: skip has the first gate, single the feed-forward with its gate, dual both.
  nn::CompiledGate attention_gate;
  nn::CompiledNorm feed_forward_norm;  // dual only
  nn::CompiledFeedForward feed_forward;
  nn::CompiledGate feed_forward_gate;
};

// The window, the states, and their keys and values.
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
  // `initial`: the states of a new document [S, D].
  CompiledBlockRecurrent(const WindowWeights& weights, CompiledCell cell, Tensor initial);
  std::unique_ptr<RowCache> open(const State& state, int64_t level,
                                 int64_t tokens_seen) const override;
  void save(const RowCache& cache, int64_t level, int64_t tokens_seen, State& state) const override;
  void end_blocks(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                  const kernels::Member& member) const override;

 private:
  // States [first, first + count) of all `rows`, numbered consecutively.
  struct Piece {
    const std::vector<RowCache*>& rows;
    int64_t first = 0;
    int64_t count = 0;
    BlockScratch& scratch;
  };
  void make_room(int64_t count, BlockScratch& scratch) const;
  // Calls work(piece) on batches of the member's states.
  template <class Work>
  void in_pieces(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                 const kernels::Member& member, const Work& work) const;
  // work(cache, state, at, number) for every row with states in the piece: states [state, state +
  // number) of the cache are states [at, at + number) of the piece.
  template <class Work>
  void by_row(const Piece& piece, const Work& work) const;

  // The states, and the input of the maps. [count, D]
  nn::Rows gather(const Piece& piece) const;
  nn::Rows normalized(const Piece& piece, const nn::Rows& states) const;
  // Maps u to rows of heads; `normalize`: to unit length.
  nn::Rows project(const nn::CompiledLinear& map, const nn::Rows& u, bool normalize,
                   const Piece& piece) const;
  // Attention of the states, given as u, to states and to the tokens of two blocks. [count, 2·H·d]
  nn::Rows attended(const nn::Rows& u, const Piece& piece) const;
  // The states after the block, in place.
  void update(const Piece& piece) const;
  // Keys and values of the states, for the tokens of the next block.
  void read(const Piece& piece) const;

  CompiledCell cell_;
  Tensor initial_;
  int64_t states_;  // S
  int64_t width_;   // D
};

}  // namespace rondo
