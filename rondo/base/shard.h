// Which part of shared work belongs to this process: that of `rank` among `size`.
#pragma once

#include <cstdint>

namespace rondo {

struct Shard {
  int64_t rank = 0;
  int64_t size = 1;

  bool is_first() const { return rank == 0; }
};

}  // namespace rondo
