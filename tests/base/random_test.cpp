// Counter-based randomness: the published numbers of Philox, determinism, distributions, and
// independence of neighboring seeds, purposes, steps and ranks.
#include "rondo/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace rondo {
namespace {

using Words = std::array<uint64_t, 2>;

// From Random123's kat_vectors, "philox2x64 10".
TEST(Random, PhiloxGivesThePublishedNumbers) {
  EXPECT_EQ(philox2x64({0, 0}, 0), (Words{0xca00a0459843d731, 0x66c24222c9a845b5}));
  EXPECT_EQ(philox2x64({UINT64_MAX, UINT64_MAX}, UINT64_MAX),
            (Words{0x65b021d60cd8310f, 0x4d02f3222f86df20}));
  EXPECT_EQ(philox2x64({0x243f6a8885a308d3, 0x13198a2e03707344}, 0xa4093822299f31d0),
            (Words{0x0a5e742c2997341c, 0xb0f883d38000de5d}));
}

TEST(Random, DrawsAreAFunctionOfTheirArguments) {
  EXPECT_EQ(counter_draw(1, "a", 2, 3, 4), counter_draw(1, "a", 2, 3, 4));
  std::set<uint64_t> draws;
  int64_t made = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (const char* purpose : {"", "a", "b", "ab", "ba"}) {
      for (uint64_t step = 0; step < 5; ++step) {
        for (uint64_t rank = 0; rank < 5; ++rank) {
          for (uint64_t index = 0; index < 5; ++index) {
            draws.insert(counter_draw(seed, purpose, step, rank, index));
            ++made;
          }
        }
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(draws.size()), made);
}

// These numbers must never change: resumed runs would draw different ones.
TEST(Random, NumbersAreFixedForever) {
  const uint64_t draw = counter_draw(1, "documents", 2, 3, 4);
  EXPECT_EQ(draw, UINT64_C(9001059010961402976));
  EXPECT_EQ(counter_permutation(8, 1, "documents", 0),
            (std::vector<int64_t>{2, 1, 7, 6, 4, 0, 5, 3}));
}

TEST(Random, SequenceIsTheDrawsInOrder) {
  CounterRandom random(7, "x", 5, 2);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(random.index(), i);
    EXPECT_EQ(random.next(), counter_draw(7, "x", 5, 2, i));
  }
  CounterRandom later(7, "x", 5, 2, 10);
  EXPECT_EQ(later.next(), random.next());
}

TEST(Random, UniformFillsItsRangeEvenly) {
  CounterRandom random(1, "uniform");
  constexpr int kDraws = 100'000;
  std::vector<int> bins(20);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    ++bins[static_cast<size_t>(value * 20)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);  // four standard errors
  for (const int count : bins) {
    EXPECT_NEAR(count, kDraws / 20, 5 * std::sqrt(kDraws / 20));
  }
}

TEST(Random, NormalHasItsMoments) {
  CounterRandom random(1, "normal");
  constexpr int kDraws = 200'000;
  double sums[4] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    double power = 1;
    for (double& sum : sums) {
      power *= value;
      sum += power / kDraws;
    }
  }
  EXPECT_EQ(random.index(), uint64_t{2} * kDraws);
  EXPECT_NEAR(sums[0], 0, 0.01);
  EXPECT_NEAR(sums[1], 1, 0.015);
  EXPECT_NEAR(sums[2], 0, 0.04);
  EXPECT_NEAR(sums[3], 3, 0.12);
}

TEST(Random, BelowIsEvenAndInRange) {
  CounterRandom random(3, "below");
  std::vector<int> counts(7);
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts.at(random.below(7));
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, kDraws / 7, 5 * std::sqrt(kDraws / 7));
  }
  EXPECT_EQ(random.below(1), 0U);
  // Two thirds of 2^64: a plain remainder would make the lower half twice as likely.
  constexpr uint64_t kLarge = UINT64_MAX / 3 * 2;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t value = random.below(kLarge);
    ASSERT_LT(value, kLarge);
    low += value < kLarge / 2 ? 1 : 0;
  }
  EXPECT_NEAR(low, kDraws / 2, 5 * std::sqrt(kDraws) / 2);
}

TEST(Random, PermutationsAreEvenAndChangeWithEveryArgument) {
  EXPECT_TRUE(counter_permutation(0, 1, "p").empty());
  EXPECT_EQ(counter_permutation(1, 1, "p"), std::vector<int64_t>{0});
  std::vector<std::vector<int>> counts(5, std::vector<int>(5));
  constexpr int kTrials = 20'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto order = counter_permutation(5, 1, "p", static_cast<uint64_t>(trial));
    for (size_t i = 0; i < order.size(); ++i) {
      ++counts[i].at(static_cast<size_t>(order[i]));
    }
  }
  for (const auto& row : counts) {
    for (const int count : row) {
      EXPECT_NEAR(count, kTrials / 5, 5 * std::sqrt(kTrials / 5));
    }
  }
  auto order = counter_permutation(1000, 1, "p");
  EXPECT_NE(order, counter_permutation(1000, 2, "p"));
  EXPECT_NE(order, counter_permutation(1000, 1, "q"));
  EXPECT_NE(order, counter_permutation(1000, 1, "p", 1));
  EXPECT_EQ(order, counter_permutation(1000, 1, "p"));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

// The correlation of two sequences that differ in one argument only, and the share of equal bits.
void expect_unrelated(CounterRandom a, CounterRandom b, const std::string& what) {
  constexpr int kDraws = 20'000;
  double product = 0;
  int64_t equal_bits = 0;
  for (int i = 0; i < kDraws; ++i) {
    CounterRandom a_copy = a;
    CounterRandom b_copy = b;
    equal_bits += 64 - __builtin_popcountll(a_copy.next() ^ b_copy.next());
    product += (a.uniform() - 0.5) * (b.uniform() - 0.5) * 12 / kDraws;
  }
  EXPECT_NEAR(product, 0, 5 / std::sqrt(kDraws)) << what;
  EXPECT_NEAR(static_cast<double>(equal_bits) / (64.0 * kDraws), 0.5,
              2.5 / std::sqrt(64.0 * kDraws))
      << what;
}

TEST(Random, NeighborsAreUnrelated) {
  const CounterRandom base(1, "dropout", 10, 0);
  expect_unrelated(base, CounterRandom(2, "dropout", 10, 0), "seed");
  expect_unrelated(base, CounterRandom(1, "dropouu", 10, 0), "purpose");
  expect_unrelated(base, CounterRandom(1, "dropout2", 10, 0), "purpose");
  expect_unrelated(base, CounterRandom(1, "dropout", 11, 0), "step");
  expect_unrelated(base, CounterRandom(1, "dropout", 10, 1), "rank");
  expect_unrelated(base, CounterRandom(1, "dropout", 10, 0, 1), "index");
  expect_unrelated(CounterRandom(0, ""), CounterRandom(1, ""), "seed from nothing");
}

// First draws over consecutive seeds, where weak mixing shows most.
TEST(Random, FirstDrawsOverSeedsAreEven) {
  constexpr int kSeeds = 50'000;
  std::vector<int> bins(16);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ++bins[counter_draw(seed, "first") >> 60];
  }
  for (const int count : bins) {
    EXPECT_NEAR(count, kSeeds / 16, 5 * std::sqrt(kSeeds / 16));
  }
}

}  // namespace
}  // namespace rondo
