// Measurements with fake clocks: which conclusions are drawn, and when none may be.
#include "bench/measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

namespace rondo::test {
namespace {

// Each measured call takes the next of these seconds per execution; the first `warm_up` calls do
// not count.
Timed script(std::vector<double> seconds, int warm_up, int& calls) {
  return [seconds, warm_up, &calls](int64_t times) {
    const int call = calls++;
    const double each = call < warm_up ? 1.0 : seconds.at(static_cast<size_t>(call - warm_up));
    return each * static_cast<double>(times);
  };
}

Timed steady(double seconds) {
  return [seconds](int64_t times) { return seconds * static_cast<double>(times); };
}

constexpr int kWarmUp = 2;  // calls before the first round when one execution is long enough

TEST(MeasureSpread, MedianAndQuartilesAreExact) {
  const Spread odd = spread_of({5, 1, 4, 2, 3});
  EXPECT_EQ(odd.median, 3.0);
  EXPECT_EQ(odd.low, 2.0);
  EXPECT_EQ(odd.high, 4.0);
  const Spread even = spread_of({4, 1, 3, 2});
  EXPECT_EQ(even.median, 2.5);
  EXPECT_EQ(even.low, 1.75);
  EXPECT_EQ(even.high, 3.25);
  const Spread one = spread_of({7});
  EXPECT_EQ(one.median, 7.0);
  EXPECT_EQ(one.high, 7.0);
}

TEST(MeasureSpread, OfWhatIsNoNumberIsNone) {
  EXPECT_TRUE(std::isnan(spread_of({1, std::nan(""), 3}).median));
  EXPECT_TRUE(std::isnan(spread_of({}).median));
}

TEST(Measure, MediansOverRounds) {
  int calls = 0;
  const Measurement m =
      measure({{"a", script({3, 1, 5, 2, 4}, kWarmUp, calls)}}, {{"canary", steady(1)}}, {});
  EXPECT_TRUE(m.conclusive);
  EXPECT_EQ(m.seconds("a").median, 3.0);
  EXPECT_EQ(m.seconds("a").low, 2.0);
  EXPECT_EQ(m.canary_moved, 0.0);
}

// Both slow down together: the ratio is unaffected, although the ratio of medians would change.
TEST(Measure, RatiosAreOfOneRound) {
  int a_calls = 0, b_calls = 0;
  const Measurement m = measure({{"a", script({1, 2, 10, 4, 5}, kWarmUp, a_calls)},
                                 {"b", script({2, 4, 20, 2, 1}, kWarmUp, b_calls)}},
                                {{"canary", steady(1)}}, {});
  EXPECT_EQ(m.ratio("b", "a").median, 2.0);  // of 2, 2, 2, 0.5, 0.2
  EXPECT_EQ(m.ratio("b", "a").low, 0.5);
}

// Sleeping takes wall-clock time but no CPU time.
TEST(MeasureClock, ProcessorTimeDoesNotSeeWaiting) {
  const Timed sleep = timed([] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
  EXPECT_GE(sleep(2), 0.06);
  use_processor_time(1);
  EXPECT_LT(sleep(2), 0.03);
  double sum = 0;
  const double begun = clock_seconds();
  while (clock_seconds() - begun < 0.01) sum += 1;
  EXPECT_GT(sum, 0);
  use_processor_time(0);
}

TEST(Measure, OrderRotates) {
  std::string order;
  const auto named = [&order](char name) {
    return [&order, name](int64_t times) {
      order += name;
      return 1.0 * static_cast<double>(times);
    };
  };
  measure({{"a", named('a')}, {"b", named('b')}, {"c", named('c')}}, {{"canary", steady(1)}}, {});
  EXPECT_EQ(order,
            "aabbcc"  // warm-up
            "abc"
            "bca"
            "cab"
            "abc"
            "bca");
}

TEST(Measure, CanariesRunBeforeEveryTurn) {
  int calls = 0;
  const auto canary = [&calls](int64_t) {
    ++calls;
    return 1.0;
  };
  measure({{"a", steady(1)}, {"b", steady(1)}}, {{"canary", canary}}, {});
  EXPECT_EQ(calls, kWarmUp + 5 * 2);
}

TEST(Measure, ShortWorkIsRepeated) {
  MeasureOptions options;
  options.sample_seconds = 0.05;
  const Measurement m =
      measure({{"short", steady(0.0001)}, {"long", steady(0.2)}}, {{"canary", steady(1)}}, options);
  EXPECT_GE(m.of("short").times, 500);
  EXPECT_LE(m.of("short").times, 1100);
  EXPECT_NEAR(m.seconds("short").median, 0.0001, 1e-12);
  EXPECT_EQ(m.of("long").times, 1);
}

// The machine gets slower throughout: no five rounds agree.
TEST(Measure, ADriftingCanaryRefuses) {
  double canary = 1.0;
  const auto drifting = [&canary](int64_t times) {
    canary *= 1.03;
    return canary * static_cast<double>(times);
  };
  const Measurement m = measure({{"a", steady(1)}}, {{"canary", drifting}}, {});
  EXPECT_FALSE(m.conclusive);
  EXPECT_GT(m.canary_moved, 0.10);
  EXPECT_EQ(m.of("a").seconds.size(), 15u);
  EXPECT_NE(m.verdict().find("inconclusive: canary varied by"), std::string::npos) << m.verdict();
}

TEST(Measure, ASteadyCanaryConcludes) {
  double canary = 1.0;
  const auto drifting = [&canary](int64_t times) {
    canary *= 1.01;
    return canary * static_cast<double>(times);
  };
  const Measurement m = measure({{"a", steady(1)}}, {{"canary", drifting}}, {});
  EXPECT_TRUE(m.conclusive);
  EXPECT_LT(m.canary_moved, 0.10);
  EXPECT_EQ(m.of("a").seconds.size(), 5u);
}

// Two rounds were disturbed: they are discarded and two more are run.
TEST(Measure, DisturbedRoundsAreReplaced) {
  int a_calls = 0, canary_calls = 0;
  MeasureOptions how;
  std::vector<int64_t> quiet;
  how.after_round = [&](int64_t rounds, int64_t of_them) {
    quiet.push_back(of_them);
    EXPECT_EQ(rounds, static_cast<int64_t>(quiet.size()));
  };
  const Measurement m =
      measure({{"a", script({1, 9, 1, 9, 1, 1, 1, 99}, kWarmUp, a_calls)}},
              {{"canary", script({1, 2, 1, 3, 1.05, 1, 1, 1}, kWarmUp, canary_calls)}}, how);
  EXPECT_EQ(quiet, (std::vector<int64_t>{1, 1, 2, 2, 3, 4, 5}));
  EXPECT_TRUE(m.conclusive);
  EXPECT_EQ(m.quiet, (std::vector<size_t>{0, 2, 4, 5, 6}));
  EXPECT_EQ(m.seconds("a").high, 1.0);
  EXPECT_NEAR(m.canary_moved, 0.05, 1e-12);
}

TEST(Measure, EveryCanaryMustBeQuiet) {
  const Samples matmul = {"matmul", 1, {1, 1, 1, 1, 2}};
  const Samples copy = {"copy", 1, {1, 1, 5, 5, 1}};
  EXPECT_EQ(quiet_rounds({matmul, copy}, 0.1), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(quiet_rounds({matmul}, 0.1), (std::vector<size_t>{0, 1, 2, 3}));
}

// A peer that crashes: its numbers are dropped, those of the others are kept.
TEST(Measure, AContestantMayDie) {
  const Measurement m = measure({{"a", steady(1)}, {"dead", [](int64_t) { return std::nan(""); }}},
                                {{"canary", steady(1)}}, {});
  EXPECT_TRUE(m.conclusive);
  EXPECT_EQ(m.seconds("a").median, 1.0);
  EXPECT_TRUE(std::isnan(m.seconds("dead").median));
}

}  // namespace
}  // namespace rondo::test
