// Keys and values of the window in bf16, beside those in fp32 that a state is made of: every token
// reads all of them as it reads the weights, and as few bits should do. No torch here.
#pragma once

#include <vector>

#include "rondo/kernels/one_query.h"
#include "rondo/kernels/packed.h"

namespace rondo {

class RoundedWindow {
 public:
  RoundedWindow(int64_t levels, int64_t heads, int64_t window, int64_t head_width);

  // Rounds what stands before `end` in a level's buffers [H, 2W, d].
  void fill(size_t level, const float* keys, const float* values, int64_t end);
  // A block has ended: the second halves of all buffers become the first. False: cannot be done
  // with this window, fill() again.
  bool move();
  // One token's key and value [d], at its place.
  void put(size_t level, int64_t head, int64_t place, const float* key, const float* value) {
    kernels::put_rounded(at(level, head), place, key, value);
  }
  kernels::RoundedHead at(size_t level, int64_t head) const {
    return heads_[level * static_cast<size_t>(heads_per_level_) + static_cast<size_t>(head)];
  }

 private:
  int64_t heads_per_level_, window_, head_width_;
  kernels::PageArena arena_;
  std::vector<kernels::RoundedHead> heads_;  // [levels · H]
};

}  // namespace rondo
