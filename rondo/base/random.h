// Counter-based random numbers: every draw is a pure function of (seed, purpose, step, rank,
// index). There is no generator state, so a resumed run draws exactly what an uninterrupted one
// would, and purposes are independent of each other.
//
// The function is Philox2x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"),
// keyed by a hash of seed, purpose and rank, with step and index as the counter. Its output is
// identical on every machine and part of the contract: changing it breaks every resumed run.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo {

// The underlying block cipher: 128 random bits per (counter, key).
std::array<uint64_t, 2> philox2x64(std::array<uint64_t, 2> counter, uint64_t key);

// 64 random bits. `purpose` names their use ("dropout", "documents"), so that different uses of one
// seed are independent.
uint64_t counter_draw(uint64_t seed, std::string_view purpose, uint64_t step = 0, uint64_t rank = 0,
                      uint64_t index = 0);

// The draws of one (seed, purpose, step, rank) in order of index: the i-th next() is
// counter_draw(seed, purpose, step, rank, i). A value type (two words and a count); a copy
// continues from the same position.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, std::string_view purpose, uint64_t step = 0, uint64_t rank = 0,
                uint64_t index = 0);

  uint64_t next();             // one draw
  double uniform();            // one draw; in [0, 1), a multiple of 2^-53
  double normal();             // two draws; mean 0, variance 1
  uint64_t below(uint64_t n);  // in [0, n), unbiased; n > 0; one draw, very rarely more
  uint64_t index() const { return index_; }  // draws taken so far

 private:
  uint64_t key_;
  uint64_t step_;
  uint64_t index_;
};

// A uniform random permutation of 0 .. n-1 (as far as 64-bit draws allow). n >= 0.
std::vector<int64_t> counter_permutation(int64_t n, uint64_t seed, std::string_view purpose,
                                         uint64_t step = 0);

}  // namespace rondo
