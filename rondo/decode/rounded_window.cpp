// Rounding keys and values.
#include "rondo/decode/rounded_window.h"

namespace rondo {
namespace {

void round_row(const float* from, int64_t count, kernels::Bf16* to) {
  for (int64_t i = 0; i < count; ++i) kernels::narrow(from[i], to[i]);
}

}  // namespace

RoundedWindow::RoundedWindow(int64_t levels, int64_t heads, int64_t window, int64_t head_width)
    : heads_(heads), window_(window), head_width_(head_width) {
  const auto numbers = static_cast<size_t>(heads * 2 * window * head_width);
  for (int64_t i = 0; i < 2 * levels; ++i) {
    buffers_.push_back(static_cast<kernels::Bf16*>(arena_.take(numbers * sizeof(kernels::Bf16))));
  }
}

void RoundedWindow::fill(size_t level, const float* keys, const float* values, int64_t end) {
  for (int64_t h = 0; h < heads_; ++h) {
    const int64_t head = h * 2 * window_ * head_width_;
    round_row(keys + head, end * head_width_, at(2 * level, h));
    round_row(values + head, end * head_width_, at(2 * level + 1, h));
  }
}

void RoundedWindow::put(size_t level, int64_t head, int64_t place, const float* key,
                        const float* value) {
  round_row(key, head_width_, at(2 * level, head) + place * head_width_);
  round_row(value, head_width_, at(2 * level + 1, head) + place * head_width_);
}

}  // namespace rondo
