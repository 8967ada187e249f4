// Timing on a noisy machine: contestants take turns in rounds, alongside canaries whose work never
// changes. Rounds in which a canary was slower than usual are dropped and replaced by more; with
// too few quiet rounds, the measurement is inconclusive. No torch dependency.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rondo {

// Does its work `times` times and returns the seconds that took; NaN if it no longer can.
using Timed = std::function<double(int64_t times)>;

// Wraps `work`, timed by the current clock.
Timed timed(std::function<void()> work);

// From now on, measures the CPU time of all threads of this process divided by their number instead
// of wall time: the time the work would take if no thread ever had to wait. For machines that are
// never quiet; it does not see threads waiting for each other.
void use_processor_time(int64_t threads);
// Seconds on the current clock.
double clock_seconds();

struct Contestant {
  std::string name;
  Timed run;
};

struct MeasureOptions {
  int64_t rounds = 5;              // quiet rounds required
  int64_t patience = 3;            // stop after this many times `rounds`
  double sample_seconds = 0.05;    // minimum duration of a sample; work is repeated to reach it
  double canary_seconds = 0.02;    // the same for a canary
  double canary_tolerance = 0.10;  // maximum spread of the canaries of quiet rounds
  // Called after each round with the number of rounds, and how many of them were quiet.
  std::function<void(int64_t rounds, int64_t quiet)> after_round = {};
};

// Median and quartiles, interpolated.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> values);

// Seconds per execution, by round.
struct Samples {
  std::string name;
  int64_t times = 1;  // executions per sample
  std::vector<double> seconds;
};

struct Measurement {
  std::vector<Samples> contestants;
  std::vector<Samples> canaries;  // mean over the round
  std::vector<size_t> quiet;      // rounds that count: all of them if inconclusive
  bool conclusive = false;
  double canary_moved = 0;  // largest over smallest canary of the rounds that count, minus 1

  // Looks up contestants and canaries by name.
  const Samples& of(const std::string& name) const;
  Spread seconds(const std::string& name) const;
  // Ratios within each counted round: noise in a round affects both.
  Spread ratio(const std::string& numerator, const std::string& denominator) const;
  std::string verdict() const;  // "5 quiet rounds of 7, …", or why it is inconclusive
};

// Each round starts with a different contestant; canaries run before each turn.
Measurement measure(const std::vector<Contestant>& contestants,
                    const std::vector<Contestant>& canaries, const MeasureOptions& options);

// The largest set of rounds in which each canary's values stay within `tolerance`.
std::vector<size_t> quiet_rounds(const std::vector<Samples>& canaries, double tolerance);

}  // namespace rondo
