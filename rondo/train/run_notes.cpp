// Time estimates, smoothed losses, and notes on learning rates.
#include "rondo/train/run_notes.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/text.h"

namespace rondo {

void SmoothedLoss::add(double loss) {
  constexpr double kFade = 1.0 - 1.0 / 30.0;
  if (!std::isfinite(loss)) return;
  sum_ = kFade * sum_ + loss;
  weight_ = kFade * weight_ + 1.0;
}

double SmoothedLoss::value() const { return weight_ > 0 ? sum_ / weight_ : 0.0; }

std::string about_time(double seconds) {
  if (seconds < 90) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return seconds < 172800 ? fmt::format("about {:.1f} h", seconds / 3600)
                          : fmt::format("about {:.1f} days", seconds / 86400);
}

std::string continued_rates(const RunConfig& config, int64_t step, int64_t steps_before) {
  const ScheduleConfig& schedule = config.schedule;
  const int64_t steps = config.train.steps;
  const bool by_steps = schedule.kind == "cosine" || schedule.kind == "linear";
  if (!by_steps || steps_before == 0 || steps == steps_before || step >= steps) return "";
  return fmt::format(
      "learning rate: {:.3g} at step {}; the {} schedule now covers {} instead of {}: it continues "
      "at {:.3g} and ends at {:.3g}",
      learning_rate(schedule, step, steps_before), with_commas(step), schedule.kind,
      counted(steps, "step"), with_commas(steps_before), learning_rate(schedule, step + 1, steps),
      learning_rate(schedule, steps, steps));
}

std::string divergence_advice(const RunConfig& config, int64_t saved_step) {
  const double rate = config.schedule.rate;
  const double clip = config.train.clip;
  return fmt::format(
      "{}; run the same command with a lower learning rate, --set schedule.rate={} (now {}), or a "
      "lower clipping threshold, --set train.clip={} (now {})",
      saved_step > 0 ? fmt::format("the checkpoint of step {} is good", saved_step)
                     : "no checkpoint was written",
      rate / 2, rate, clip > 0.0 ? clip / 2 : 1.0, clip);
}

}  // namespace rondo
