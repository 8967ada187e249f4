// One token at a time by our own loop: what LanguageModel::step() computes for one row, without
// torch, with buffers made once and weights packed once (step_weights.h). Everything that weighs is
// shared out between threads, and what is cheap each thread does for itself, so that they need to
// meet only five times a level. The result does not depend on the number of threads.
#pragma once

#include "rondo/decode/step_weights.h"
#include "rondo/kernels/team.h"

namespace rondo {

class StepLoop {
 public:
  // At most `threads` threads; fewer when more do not help.
  StepLoop(std::shared_ptr<const StepWeights> weights, int threads);

  // Reads `token` into the buffers of `caches` (of one row) and returns the logits [V], valid until
  // the next call. LanguageModel::end_step() must follow.
  const float* step(int64_t token, StepCaches& caches);

 private:
  using Row = std::vector<float>;
  // Pointers into one level's buffers.
  struct View {
    float* keys = nullptr;  // [H, 2W, d]
    float* values = nullptr;
    const float* bias = nullptr;  // [H, seen]
    // The states this level's tokens read, if any.
    const float* state_keys = nullptr;
    const float* state_values = nullptr;
    int64_t states = 0;
    int64_t state_head = 0;  // from one head to the next
    int64_t state_row = 0;   // from one state to the next
  };
  // What every thread has of its own.
  struct Own {
    Row u, low, scores;
    Row signals[3], inputs[3];
  };

  View view_of(const StepCaches& caches, size_t level) const;
  void play(int member);
  void play_mixing(const StepLevel& level, const View& view, int member);
  void play_feed(const StepFeedPlace& place, int member);
  void attend_head(const StepLevel& level, const View& view, int64_t head, Own& own);
  void attend_states(const StepLevel& level, const View& view, int64_t head, Own& own);
  void add_static_code(const StepLevel& level, int member);
  void head(int member);
  // Panels of w that `member` works on.
  std::pair<int64_t, int64_t> share(const kernels::PackedMatrix& w, int member) const;
  // y = w · x, the member's rows.
  void multiply(const kernels::PackedMatrix& w, const float* x, float* y, int member) const;
  // x = identity · x + branch · (w · input + bias), the member's rows.
  void project(const kernels::PackedMatrix& w, const Row& input, const float* bias, StepJoin join,
               int member);

  std::shared_ptr<const StepWeights> weights_;
  kernels::Team team_;
  kernels::ThreadChoice choice_;
  int members_ = 1;
  std::vector<View> views_;
  int64_t phase_ = 0;
  int64_t behind_ = 0;  // tokens read before this one
  std::vector<double> position_code_;
  // Shared by the threads; rows of padded length, zeros at the end.
  Row x_, q_, k_, v_, state_q_, heads_, hidden_, y_, logits_;
  std::vector<Own> own_;
};

}  // namespace rondo
