// numpy's default generator (numpy.random.default_rng), as far as whole numbers below a bound go:
// PCG64 (O'Neill 2014: a 128-bit linear congruential generator with an output that folds and
// rotates its state), seeded through numpy's SeedSequence.
#pragma once

#include <cstdint>

namespace rondo {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  // As default_rng(seed).integers(0, bound) draws them one after the other; `bound` is at least 1.
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
