// Bounded integers of numpy's default generator (numpy.random.default_rng): PCG64 (O'Neill 2014: a
// 128-bit linear congruential generator whose output folds and rotates the state), seeded through
// numpy's SeedSequence.
#pragma once

#include <cstdint>

namespace rondo {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  // The same sequence as default_rng(seed).integers(0, bound), drawn one at a time. `bound` >= 1.
  uint32_t below(uint32_t bound);

 private:
  // 128 bits as two halves.
  struct Wide {
    uint64_t high = 0;
    uint64_t low = 0;
  };
  static Wide sum(const Wide& a, const Wide& b);
  static Wide product(const Wide& a, const Wide& b);
  void step();
  uint64_t next64();
  uint32_t next32();  // the lower half of a draw first, then the upper

  Wide state_;
  Wide increment_;
  uint32_t kept_ = 0;
  bool has_kept_ = false;
};

}  // namespace rondo
