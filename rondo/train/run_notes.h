// What a training run tells its user besides numbers of a step.
#pragma once

#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

// The loss of late, which a single batch's jumps around: a mean that fades over some 30 steps.
class SmoothedLoss {
 public:
  void add(double loss);
  double value() const;  // 0 before the first

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// "about 12 min".
std::string about_time(double seconds);

// What the learning rate will do in a run that is continued at `step` with another number of steps
// than before (`steps_before`); "" if its schedule does not depend on that.
std::string continued_rates(const RunConfig& config, int64_t step, int64_t steps_before);

// What to do about losses or weights that are not finite, with the flags to do it with.
// `saved_step`: of the newest checkpoint; 0 = there is none.
std::string divergence_advice(const RunConfig& config, int64_t saved_step);

}  // namespace rondo
