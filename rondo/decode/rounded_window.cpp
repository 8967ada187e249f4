// Rounding keys and values.
#include "rondo/decode/rounded_window.h"

namespace rondo {

RoundedWindow::RoundedWindow(int64_t levels, int64_t heads, int64_t window, int64_t head_width)
    : heads_per_level_(heads), window_(window), head_width_(head_width) {
  const int64_t numbers = kernels::rounded_size(2 * window, head_width);
  const auto take = [&] {
    return static_cast<kernels::Bf16*>(
        arena_.take(static_cast<size_t>(numbers) * sizeof(kernels::Bf16)));
  };
  for (int64_t i = 0; i < levels * heads; ++i) heads_.push_back({take(), take(), head_width});
}

void RoundedWindow::fill(size_t level, const float* keys, const float* values, int64_t end) {
  for (int64_t h = 0; h < heads_per_level_; ++h) {
    for (int64_t place = 0; place < end; ++place) {
      const int64_t from = (h * 2 * window_ + place) * head_width_;
      put(level, h, place, keys + from, values + from);
    }
  }
}

bool RoundedWindow::move() {
  if (window_ % kernels::kPanel != 0) return false;
  for (const kernels::RoundedHead& head : heads_) kernels::move_rounded(head, window_);
  return true;
}

}  // namespace rondo
