// A stack for decoding: computes what Stack::forward does, for one new token of each of a few
// documents, from packed weights that are read once for all of them. Created by Stack::compile,
// which asks every part to compile itself. (Whole sequences: compiled_sequence.h.)
//
// Immutable and shared by any number of threads, each with its own StepWorkspace.
#pragma once

#include "rondo/recurrence/compiled_mixing.h"
#include "rondo/recurrence/recursive.h"
#include "rondo/recurrence/ring.h"
#include "rondo/recurrence/universal.h"

namespace rondo {

// The decoding state of one document.
struct RowPast {
  int64_t tokens_seen = 0;
  std::vector<std::unique_ptr<RowCache>> levels;
  std::vector<std::shared_ptr<const CrossMemory>> memories;  // by set of weights; decoders only
  State plain;  // with reference kernels, instead of both: the state of the network's modules

  RowPast clone() const;
  int64_t bytes() const;
};

class SequenceMixing;

struct CompiledLevel {
  const CompiledMixing* mixing = nullptr;    // token by token,
  const SequenceMixing* sequence = nullptr;  // or over whole sequences
  const nn::CompiledProjections* maps =
      nullptr;  // the mixing's, or the level's own with folded signals
  int64_t loop = 0;
  int64_t groups = 1;
  nn::CompiledNorm mixing_norm;
  CompiledJoin mixing_join;
  const nn::CompiledProjections* cross = nullptr;  // null: the level has none
  size_t memory = 0;                               // index into a row's memories
  nn::CompiledNorm cross_norm;
  CompiledJoin cross_join;
  const nn::CompiledFeedForward* feed_forward = nullptr;  // null: the level has none
  nn::CompiledNorm feed_forward_norm;
  CompiledJoin feed_forward_join;
  const CompiledSignals* signals = nullptr;  // null: none, or folded into the level's own maps
  const CompiledLoopProjection* projection = nullptr;
  int64_t static_signal = 0;  // 1-based; 0: none
};

// Activation buffers of a step, reused between steps.
class StepWorkspace {
 public:
  // Buffers of one member.
  struct Own {
    nn::RowBuffer x, u, low, signals[3], inputs[3];
    std::vector<float> scratch;
    BlockScratch blocks;
  };
  // Rows as wide as the stream, free for the member's use after the last level.
  nn::Rows spare(const kernels::Member& member, int64_t rows) {
    return own_[static_cast<size_t>(member.index)].u.rows(rows);
  }

 private:
  friend class CompiledStack;
  nn::RowBuffer stream_, q_, k_, v_, state_q_, heads_, hidden_, y_;
  std::vector<double> position_parts_;  // [rows, D]
  std::vector<Own> own_;
  int64_t rows_ = 0;
  int members_ = 0;
};

// The parts that all compiled stacks have in common.
class CompiledLevels {
 public:
  int64_t width() const { return width_; }
  int64_t size() const { return static_cast<int64_t>(levels_.size()); }

 protected:
  friend class Stack;
  bool post_norm_ = false;
  int64_t width_ = 0;
  int64_t inner_ = 0;   // widest heads · head_width
  int64_t hidden_ = 0;  // widest feed-forward
  int64_t rank_ = 0;
  std::vector<std::unique_ptr<nn::CompiledProjections>> crosses_, own_maps_;
  std::vector<std::unique_ptr<nn::CompiledFeedForward>> feed_forwards_, own_feed_forwards_;
  std::vector<std::unique_ptr<CompiledSignals>> signals_;
  std::vector<std::unique_ptr<CompiledLoopProjection>> projections_;
  CompiledStaticSignal static_signal_;
  std::vector<CompiledLevel> levels_;
};

// The documents that take their next token in the same step.
using StepRows = std::vector<RowPast*>;
// Throws Error{bad_input} unless there is one row of a model with `levels` levels per token, and
// every token is below `vocabulary`.
void check_step(const StepRows& rows, const std::vector<int64_t>& tokens, int64_t levels,
                int64_t vocabulary);

class CompiledStack : public CompiledLevels {
 public:
  RowPast open(const State& state, int64_t tokens_seen) const;
  void save(const RowPast& past, State& state) const;

  // Allocates buffers and prepares the caches for one more token; returns the rows [n, D] to be
  // filled with embeddings.
  nn::Rows begin(const StepRows& rows, int members, StepWorkspace& workspace) const;
  // Runs all levels and the work at the end of blocks; every member calls this. Returns the stream
  // after the last level, which all members may read.
  nn::Rows forward(const StepRows& rows, StepWorkspace& workspace,
                   const kernels::Member& member) const;
  // Advances the documents by the token just processed.
  void end(const StepRows& rows) const;

 private:
  friend class Stack;
  struct Step;

  void add_static_signal(const CompiledLevel& level, Step& step) const;
  void mix(const CompiledLevel& level, size_t number, Step& step) const;
  void project(const CompiledLevel& level, const nn::Rows& u, Step& step) const;
  void attend(const CompiledMixing& mixing, size_t number, Step& step) const;
  void read_memory(const CompiledLevel& level, Step& step) const;
  void attend_memory(const CompiledLevel& level, Step& step) const;
  void feed(const CompiledLevel& level, Step& step) const;
  void forward_projection(const CompiledLoopProjection& projection, Step& step) const;
  void end_blocks(Step& step) const;
  // x = join(x, w · input), then the norm if `norm_after` is given.
  void join(const nn::CompiledLinear& w, const nn::Rows& input, CompiledJoin how,
            const nn::CompiledNorm* norm_after, Step& step) const;

  int64_t feedback_level_ = -1;  // whose states all levels read; -1: each level reads its own
  std::vector<std::shared_ptr<const CompiledMixing>> mixings_;
};

}  // namespace rondo
