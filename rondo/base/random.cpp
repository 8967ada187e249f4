// Philox and the distributions built on it.
#include "rondo/base/random.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "rondo/base/error.h"

namespace rondo {
namespace {

__extension__ using Wide = unsigned __int128;  // the product of two words

constexpr uint64_t kPhiloxMultiplier = 0xD2B74407B1CE6E93;
constexpr uint64_t kPhiloxWeyl = 0x9E3779B97F4A7C15;  // added to the key after each round
constexpr int kPhiloxRounds = 10;

// FNV-1a; the cipher does the rest of the mixing.
uint64_t hash_purpose(std::string_view purpose) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : purpose) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  }
  return hash;
}

// Passes seed and rank through the cipher, so that neighboring values give unrelated keys.
uint64_t key_of(uint64_t seed, std::string_view purpose, uint64_t rank) {
  return philox2x64({seed, rank}, hash_purpose(purpose))[0];
}

}  // namespace

std::array<uint64_t, 2> philox2x64(std::array<uint64_t, 2> counter, uint64_t key) {
  auto [left, right] = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Wide product = static_cast<Wide>(kPhiloxMultiplier) * left;
    left = static_cast<uint64_t>(product >> 64) ^ key ^ right;
    right = static_cast<uint64_t>(product);
    key += kPhiloxWeyl;
  }
  return {left, right};
}

uint64_t counter_draw(uint64_t seed, std::string_view purpose, uint64_t step, uint64_t rank,
                      uint64_t index) {
  return philox2x64({index, step}, key_of(seed, purpose, rank))[0];
}

CounterRandom::CounterRandom(uint64_t seed, std::string_view purpose, uint64_t step, uint64_t rank,
                             uint64_t index)
    : key_(key_of(seed, purpose, rank)), step_(step), index_(index) {}

uint64_t CounterRandom::next() { return philox2x64({index_++, step_}, key_)[0]; }

double CounterRandom::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

// Box-Muller, keeping one of the two values so that each call takes a fixed number of draws.
double CounterRandom::normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // argument in (0, 1]: finite
  return radius * std::cos(kTwoPi * uniform());
}

// Lemire's method: draws in the incomplete last interval of [0, 2^64) are rejected.
uint64_t CounterRandom::below(uint64_t n) {
  RONDO_ASSERT(n > 0);
  Wide product = static_cast<Wide>(next()) * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t rest = (0 - n) % n;  // 2^64 mod n
    while (static_cast<uint64_t>(product) < rest) {
      product = static_cast<Wide>(next()) * n;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

std::vector<int64_t> counter_permutation(int64_t n, uint64_t seed, std::string_view purpose,
                                         uint64_t step) {
  RONDO_ASSERT(n >= 0);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  CounterRandom random(seed, purpose, step);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

}  // namespace rondo
