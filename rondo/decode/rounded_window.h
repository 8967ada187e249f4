// Keys and values of the window in bf16, beside those in fp32 that a state is made of: every token
// reads all of them as it reads the weights, and as few bits should do. No torch here.
#pragma once

#include "rondo/kernels/packed.h"

namespace rondo {

class RoundedWindow {
 public:
  RoundedWindow(int64_t levels, int64_t heads, int64_t window, int64_t head_width);

  // Rounds what stands before `end` in a level's buffers [H, 2W, d].
  void fill(size_t level, const float* keys, const float* values, int64_t end);
  // One token's key and value [d], at its place.
  void put(size_t level, int64_t head, int64_t place, const float* key, const float* value);

  const kernels::Bf16* keys(size_t level, int64_t head) const { return at(2 * level, head); }
  const kernels::Bf16* values(size_t level, int64_t head) const { return at(2 * level + 1, head); }

 private:
  kernels::Bf16* at(size_t buffer, int64_t head) const {
    return buffers_[buffer] + head * 2 * window_ * head_width_;
  }
  int64_t heads_, window_, head_width_;
  kernels::PageArena arena_;
  std::vector<kernels::Bf16*> buffers_;  // [levels · 2], each [H, 2W, d]
};

}  // namespace rondo
