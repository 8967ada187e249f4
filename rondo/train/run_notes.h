// What a training run tells its user besides the metrics of a step.
#pragma once

#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

// The recent loss, smoothed over about 30 steps, because single batches are noisy.
class SmoothedLoss {
 public:
  void add(double loss);
  double value() const;  // 0 before the first add()

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// "about 12 min".
std::string about_time(double seconds);

// How the learning rate continues in a run resumed at `step` with a number of steps other than
// `steps_before`; "" if its schedule does not depend on it.
std::string continued_rates(const RunConfig& config, int64_t step, int64_t steps_before);

// What to do about losses or weights that are not finite, with the options to do it.
// `saved_step`: of the newest checkpoint; 0 = none.
std::string divergence_advice(const RunConfig& config, int64_t saved_step);

}  // namespace rondo
