// Rate limiter for messages about events that may occur every step.
#pragma once

#include <chrono>
#include <optional>

namespace rondo {

class Throttle {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Throttle(std::chrono::seconds interval) : interval_(interval) {}

  // True the first time, and again once `interval` has passed since the last true.
  bool due(Clock::time_point now = Clock::now()) {
    if (last_.has_value() && now - *last_ < interval_) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::seconds interval_;
  std::optional<Clock::time_point> last_;
};

}  // namespace rondo
