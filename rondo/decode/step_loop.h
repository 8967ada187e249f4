// One token at a time by our own loop: what LanguageModel::step() computes for one row, without
// torch, with buffers made once and weights packed once (step_weights.h). Everything that weighs is
// shared out between threads, and what is cheap each thread does for itself, so that they need to
// meet only four times a level. The result does not depend on the number of threads. With weights
// in fewer bits than 32 keys and values are read in bf16.
#pragma once

#include "rondo/decode/rounded_window.h"
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
  // To be called when the caches of the next step are others than those of the last.
  void caches_changed() { caches_are_new_ = true; }

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
  void look_at(const StepCaches& caches);
  void play_mixing(size_t number, int member);
  void play_feed(const StepFeedPlace& place, int member);
  void attend_head(size_t number, int64_t head, Own& own);
  void attend_window(size_t number, int64_t head, Own& own);
  void attend_states(const StepLevel& level, const View& view, int64_t head, Own& own);
  void add_static_code(const StepLevel& level, int member);
  void head(int member);
  // Whether the rows of a projection that a member computes are those of the heads it attends with.
  bool heads_are_own() const;
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
  std::unique_ptr<RoundedWindow> rounded_;  // null: fp32
  bool caches_are_new_ = true;
  int64_t phase_ = 0;
  int64_t behind_ = 0;  // tokens read before this one
  std::vector<double> position_code_;
  // Shared by the threads; rows of padded length, zeros at the end.
  Row x_, q_, k_, v_, state_q_, heads_, hidden_, y_, logits_;
  std::vector<Own> own_;
};

}  // namespace rondo
