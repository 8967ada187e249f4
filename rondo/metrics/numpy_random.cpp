// PCG64 and SeedSequence.
#include "rondo/metrics/numpy_random.h"

#include <array>
#include <cstddef>
#include <vector>

namespace rondo {
namespace {

constexpr size_t kPool = 4;
constexpr uint32_t kShift = 16;

// numpy's SeedSequence: seed words are mixed into a pool, from which states are generated.
class SeedPool {
 public:
  explicit SeedPool(uint64_t seed) {
    std::vector<uint32_t> words = {static_cast<uint32_t>(seed)};
    if (seed >> 32U != 0) words.push_back(static_cast<uint32_t>(seed >> 32U));
    for (size_t i = 0; i < kPool; ++i) pool_[i] = stirred(i < words.size() ? words[i] : 0);
    for (size_t from = 0; from < kPool; ++from) {
      for (size_t to = 0; to < kPool; ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], stirred(pool_[from]));
      }
    }
  }

  // The first eight words, as four 64-bit numbers.
  std::array<uint64_t, 4> state() const {
    uint32_t constant = 0x8b51f9dd;
    std::array<uint64_t, 4> state = {};
    for (size_t i = 0; i < 2 * state.size(); ++i) {
      uint32_t value = pool_[i % kPool] ^ constant;
      constant *= 0x58f38ded;
      value *= constant;
      value ^= value >> kShift;
      state[i / 2] |= static_cast<uint64_t>(value) << (i % 2 == 0 ? 0U : 32U);
    }
    return state;
  }

 private:
  uint32_t stirred(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875;
    value *= constant_;
    return value ^ value >> kShift;
  }
  static uint32_t mixed(uint32_t x, uint32_t y) {
    const uint32_t value = 0xca01f9dd * x - 0x4973f715 * y;
    return value ^ value >> kShift;
  }

  uint32_t constant_ = 0x43b0d7e5;
  std::array<uint32_t, kPool> pool_ = {};
};

// The upper half of the product of two 64-bit numbers.
uint64_t upper_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xFFFFFFFFU;
  const uint64_t a1 = a >> 32U;
  const uint64_t b0 = b & 0xFFFFFFFFU;
  const uint64_t b1 = b >> 32U;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32U);
  const uint64_t other = a0 * b1 + (middle & 0xFFFFFFFFU);
  return a1 * b1 + (middle >> 32U) + (other >> 32U);
}

}  // namespace

NumpyRandom::Wide NumpyRandom::sum(const Wide& a, const Wide& b) {
  Wide result = {a.high + b.high, a.low + b.low};
  result.high += result.low < a.low ? 1 : 0;
  return result;
}

NumpyRandom::Wide NumpyRandom::product(const Wide& a, const Wide& b) {
  return {upper_product(a.low, b.low) + a.high * b.low + a.low * b.high, a.low * b.low};
}

NumpyRandom::NumpyRandom(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedPool(seed).state();
  increment_ = {words[2] << 1U | words[3] >> 63U, words[3] << 1U | 1U};
  step();
  state_ = sum(state_, {words[0], words[1]});
  step();
}

void NumpyRandom::step() {
  constexpr Wide kMultiplier = {0x2360ED051FC65DA4, 0x4385DF649FCCF645};
  state_ = sum(product(state_, kMultiplier), increment_);
}

uint64_t NumpyRandom::next64() {
  step();
  const uint64_t folded = state_.high ^ state_.low;
  const uint64_t turn = state_.high >> 58U;
  return folded >> turn | folded << ((64U - turn) & 63U);
}

uint32_t NumpyRandom::next32() {
  has_kept_ = !has_kept_;
  if (!has_kept_) return kept_;
  const uint64_t draw = next64();
  kept_ = static_cast<uint32_t>(draw >> 32U);
  return static_cast<uint32_t>(draw);
}

// Lemire's method: multiplication instead of division, with few rejections.
uint32_t NumpyRandom::below(uint32_t bound) {
  if (bound <= 1) return 0;
  uint64_t scaled = static_cast<uint64_t>(next32()) * bound;
  if (static_cast<uint32_t>(scaled) < bound) {
    const uint32_t rejected = (UINT32_MAX - (bound - 1)) % bound;
    while (static_cast<uint32_t>(scaled) < rejected) {
      scaled = static_cast<uint64_t>(next32()) * bound;
    }
  }
  return static_cast<uint32_t>(scaled >> 32U);
}

}  // namespace rondo
