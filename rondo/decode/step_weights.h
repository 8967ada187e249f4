// A language model's weights, packed once for reading one token at a time (step_loop.h): what a
// level plays, whichever scheme gave it. Weights that levels share are packed once too.
#pragma once

#include <memory>

#include "rondo/kernels/packed.h"
#include "rondo/model/language_model.h"

namespace rondo {

struct StepNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;  // null: RMS norm
  float epsilon = 0.0F;
};

// x = identity · x + branch · f(x).
struct StepJoin {
  float identity = 1.0F;
  float branch = 1.0F;
};

// g(x) = up · (down · x); a full matrix has no `down`. Nothing at all where up.out is 0.
struct StepSignal {
  kernels::PackedMatrix down, up;
  bool there() const { return up.out > 0; }
};

struct StepMixing {
  kernels::PackedMatrix query, key, value, output;
  kernels::PackedMatrix state_query;  // out 0: does not read states
  const float* scale = nullptr;       // [H]
  const float* state_scale = nullptr;
  bool reads_states() const { return state_query.out > 0; }
};

// A feed-forward with its norm, join and signal: also the projection after a loop is one.
struct StepFeed {
  kernels::PackedMatrix up, down;
  const float* up_bias = nullptr;  // null: none
  const float* down_bias = nullptr;
  bool gelu = false;  // else relu
};

struct StepFeedPlace {
  const StepFeed* feed = nullptr;  // null: the level has none
  StepNorm norm;
  StepJoin join;
  StepSignal signal;
  bool inner_signal = false;  // joins before the activation, not before the norm
};

struct StepLevel {
  const StepMixing* mixing = nullptr;
  StepNorm norm;
  StepJoin join;
  StepSignal signals[3];        // of query, key, value
  bool signals_before = false;  // join what the maps read, not what they give
  StepFeedPlace feed, projection;
  std::vector<double> level_code;  // universal: the level's part of the static table [D]
};

class StepWeights {
 public:
  // Of a model that can_step(). Changes of its weights after this are not noticed.
  StepWeights(const LanguageModel& model, kernels::PackedFormat format);
  StepWeights(const StepWeights&) = delete;
  StepWeights& operator=(const StepWeights&) = delete;

  const LanguageModelConfig& config() const { return config_; }
  const std::vector<StepLevel>& levels() const { return levels_; }
  const StepNorm& norm() const { return norm_; }
  const float* embedding(int64_t token) const;  // [D]
  const kernels::PackedMatrix& head() const { return head_; }
  // Frequencies of the static table; empty where no level has one. [D]
  const std::vector<double>& rates() const { return rates_; }
  // The level whose states the others read; kNone without feedback.
  int64_t feedback_level() const { return feedback_level_; }
  // What one step reads of them.
  size_t bytes() const { return arena_.bytes(); }

 private:
  class Packer;

  LanguageModelConfig config_;
  kernels::PageArena arena_;
  std::vector<Tensor> kept_;  // whose memory the pointers show to
  std::vector<std::unique_ptr<StepMixing>> mixings_;
  std::vector<std::unique_ptr<StepFeed>> feeds_;
  std::vector<StepLevel> levels_;
  StepNorm norm_;
  Tensor embedding_;
  kernels::PackedMatrix head_;
  std::vector<double> rates_;
  int64_t feedback_level_ = kNone;
};

}  // namespace rondo
