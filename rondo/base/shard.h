// This process's share of distributed work: `rank` of `size`.
#pragma once

#include <cstdint>

namespace rondo {

struct Shard {
  int64_t rank = 0;
  int64_t size = 1;

  bool is_first() const { return rank == 0; }
};

}  // namespace rondo
