// A stack for inference over whole sequences: encoders and image networks. The same levels as in
// compiled_stack.h, without cached tokens. Created by Stack::compile_sequences.
//
// forward() is run by all members of a team together, or by one thread alone. Per-token work
// (norms, matmuls with weights, feed-forwards) is done for a few tokens at a time, from the
// attention output to the end of the level, so that activations stay in the CPU caches; members
// have their own tokens and synchronize around token mixing. Results do not depend on the number of
// members.
//
// Immutable and shared by any number of threads; each team needs its own SequenceWorkspace.
#pragma once

#include "rondo/recurrence/compiled_stack.h"
#include "rondo/recurrence/sliced.h"

namespace rondo {

struct SequenceShape {
  int64_t sequences = 1;
  int64_t tokens = 0;             // of each
  const uint8_t* mask = nullptr;  // [sequences, tokens]: 0 = masked; null: nothing is

  int64_t rows() const { return sequences * tokens; }
};

// The order in which a level mixes the tokens of a sequence: place i holds token tokens[i].
struct TokenOrder {
  explicit TokenOrder(const Tensor& permutation);
  std::vector<int64_t> tokens, places;  // each other's inverse
};

// Buffers of one member.
struct SequenceScratch {
  nn::RowBuffer x, u, y, hidden, low, signal;
  nn::RowBuffer turned, turned_hidden;  // of mixings over the token axis
};

class SequenceMixing {
 public:
  virtual ~SequenceMixing() = default;

  // The projections of queries, keys and values, and of the output. Null: the mixing reads the
  // level's (normalized) input as `q` and its result is used as it is.
  virtual const nn::CompiledProjections* maps() const { return nullptr; }
  virtual SlicePlan slice(int64_t /*loop*/, int64_t /*groups*/) const { return {}; }

  struct Input {
    SequenceShape shape;
    int64_t groups = 1;
    nn::Rows q, k, v;  // one row per token
    nn::Rows out;
    SequenceScratch* scratch = nullptr;
  };
  // Computes the member's share of `out`.
  virtual void mix(const Input& in, const kernels::Member& member) const = 0;
};

// Activation buffers, reused between calls.
class SequenceWorkspace {
 private:
  friend class CompiledSequenceStack;
  nn::RowBuffer stream_, q_, k_, v_, out_;
  std::vector<double> position_parts_;  // [tokens, D]
  std::vector<SequenceScratch> own_;
};

class CompiledSequenceStack : public CompiledLevels {
 public:
  // Appends the token orders of the levels that permute, in order, drawn from `permutations`.
  void draw_orders(Permutations& permutations, int64_t tokens,
                   std::vector<TokenOrder>& orders) const;

  // Allocates buffers; returns the rows [sequences · tokens, D] to be filled with embeddings.
  nn::Rows begin(const SequenceShape& shape, int members, SequenceWorkspace& workspace) const;
  // The same rows again.
  nn::Rows rows(const SequenceShape& shape, SequenceWorkspace& workspace) const {
    return workspace.stream_.rows(shape.rows());
  }
  // Runs all levels; every member calls this once all rows are filled. `orders`: as drawn by
  // draw_orders() for this stack. Returns the output rows when all members are done.
  nn::Rows forward(const SequenceShape& shape, const TokenOrder* orders,
                   SequenceWorkspace& workspace, const kernels::Member& member) const;

 private:
  friend class Stack;
  struct Pass;
  void add_static_signal(const CompiledLevel& level, const Pass& pass) const;
  // Projects tokens at places [first, first + count) to queries, keys and values.
  void project(const CompiledLevel& level, const TokenOrder* order, int64_t first, int64_t count,
               const Pass& pass) const;
  // Takes tokens [first, first + count) from the mixing output to the end of the level.
  void finish(const CompiledLevel& level, const TokenOrder* order, int64_t first, int64_t count,
              const Pass& pass) const;
  void feed(const CompiledLevel& level, const nn::Rows& x, const Pass& pass) const;
  // x = join(x, w · input), then the norm if post-norm.
  void join(const nn::CompiledLinear& w, const nn::Rows& input, CompiledJoin how,
            const nn::CompiledNorm& norm, const nn::Rows& x, const Pass& pass) const;

  std::vector<std::shared_ptr<const SequenceMixing>> mixings_;
};

}  // namespace rondo
