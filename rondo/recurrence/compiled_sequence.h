// A stack as inference runs it over whole sequences: encoders and image networks. The same levels
// as in compiled_stack.h, without a past. Made by Stack::compile_sequences.
//
// All members of a team run forward() together, or one does alone. What needs one token only
// (norms, products with weights, feed-forwards) is done for a few tokens at a time, from the
// attention's output to the end of the level, so that they stay in the caches; a member has its own
// tokens, and members meet around token mixing. Numbers do not depend on the number of members.
//
// Immutable, and shared by any number of threads, each team with a SequenceWorkspace of its own.
#pragma once

#include "rondo/recurrence/compiled_stack.h"
#include "rondo/recurrence/sliced.h"

namespace rondo {

struct SequenceShape {
  int64_t sequences = 1;
  int64_t tokens = 0;             // of each
  const uint8_t* mask = nullptr;  // [sequences, tokens]: 0 where nobody looks; null: everywhere

  int64_t rows() const { return sequences * tokens; }
};

// The order in which a level mixes the tokens of a sequence: place i is that of token tokens[i].
struct TokenOrder {
  explicit TokenOrder(const Tensor& permutation);
  std::vector<int64_t> tokens, places;  // each other's inverse
};

// What one member has of its own.
struct SequenceScratch {
  nn::RowBuffer x, u, y, hidden, low, signal;
  nn::RowBuffer turned, turned_hidden;  // of mixings over the token axis
};

class SequenceMixing {
 public:
  virtual ~SequenceMixing() = default;

  // Queries, keys and values are made by these, results go through their output. Null: the mixing
  // reads what the level normalizes, as `q`, and results are the level's.
  virtual const nn::CompiledProjections* maps() const { return nullptr; }
  virtual SlicePlan slice(int64_t /*loop*/, int64_t /*groups*/) const { return {}; }

  struct Input {
    SequenceShape shape;
    int64_t groups = 1;
    nn::Rows q, k, v;  // a row for every token
    nn::Rows out;
    SequenceScratch* scratch = nullptr;
  };
  // The member's part of all rows of `out`.
  virtual void mix(const Input& in, const kernels::Member& member) const = 0;
};

// Room for activations, made once and used again.
class SequenceWorkspace {
 private:
  friend class CompiledSequenceStack;
  nn::RowBuffer stream_, q_, k_, v_, out_;
  std::vector<double> position_parts_;  // [tokens, D]
  std::vector<SequenceScratch> own_;
};

class CompiledSequenceStack : public CompiledLevels {
 public:
  // The orders that levels permute their tokens in, one after the other, drawn from `permutations`.
  void draw_orders(Permutations& permutations, int64_t tokens,
                   std::vector<TokenOrder>& orders) const;

  // Makes room; returns the rows [sequences · tokens, D] that the caller fills with embeddings.
  nn::Rows begin(const SequenceShape& shape, int members, SequenceWorkspace& workspace) const;
  // The same rows again.
  nn::Rows rows(const SequenceShape& shape, SequenceWorkspace& workspace) const {
    return workspace.stream_.rows(shape.rows());
  }
  // All levels; every member calls this, when all rows are filled. `orders`: as many as
  // draw_orders() gave for this stack. Returns the rows as they are in the end, when all members
  // are done with them.
  nn::Rows forward(const SequenceShape& shape, const TokenOrder* orders,
                   SequenceWorkspace& workspace, const kernels::Member& member) const;

 private:
  friend class Stack;
  struct Pass;
  void add_static_signal(const CompiledLevel& level, const Pass& pass) const;
  // Tokens at places [first, first + count) to queries, keys and values.
  void project(const CompiledLevel& level, const TokenOrder* order, int64_t first, int64_t count,
               const Pass& pass) const;
  // Tokens [first, first + count) from the mixing's results to the end of the level.
  void finish(const CompiledLevel& level, const TokenOrder* order, int64_t first, int64_t count,
              const Pass& pass) const;
  void feed(const CompiledLevel& level, const nn::Rows& x, const Pass& pass) const;
  // x = join(x, w · input), normalized where that is its place.
  void join(const nn::CompiledLinear& w, const nn::Rows& input, CompiledJoin how,
            const nn::CompiledNorm& norm, const nn::Rows& x, const Pass& pass) const;

  std::vector<std::shared_ptr<const SequenceMixing>> mixings_;
};

}  // namespace rondo
