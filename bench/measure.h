// Timing on a machine that is not quiet: contestants take turns in rounds, beside canaries whose
// work never changes. Rounds in which a canary was slower than usual are dropped, more are run in
// their place, and where too few quiet ones come together nothing is concluded. No torch here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rondo {

// Does its work `times` over and says how many seconds that took. Not a number: it cannot any more.
using Timed = std::function<double(int64_t times)>;

// `work`, timed by the clock in use.
Timed timed(std::function<void()> work);

// From now on time is not that of the wall but what the processor spent on all threads of this
// process, divided by their number: what work would take if no thread ever had to wait. For
// machines that are never quiet; it does not see threads that wait for each other.
void use_processor_time(int64_t threads);
// Seconds of the clock in use.
double clock_seconds();

struct Contestant {
  std::string name;
  Timed run;
};

struct MeasureOptions {
  int64_t rounds = 5;              // quiet rounds wanted
  int64_t patience = 3;            // give up after this many times `rounds`
  double sample_seconds = 0.05;    // work is repeated until a sample takes so long
  double canary_seconds = 0.02;    // the same for a canary
  double canary_tolerance = 0.10;  // how far canaries of quiet rounds may lie apart
  // Is told after each round how many there were, and how many of them were quiet.
  std::function<void(int64_t rounds, int64_t quiet)> after_round = {};
};

// Middle and quartiles, interpolated.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> values);

// Seconds of one execution, by round.
struct Samples {
  std::string name;
  int64_t times = 1;  // executions in each sample
  std::vector<double> seconds;
};

struct Measurement {
  std::vector<Samples> contestants;
  std::vector<Samples> canaries;  // mean of the round
  std::vector<size_t> quiet;      // rounds that count: all of them when nothing can be concluded
  bool conclusive = false;
  double canary_moved = 0;  // largest over smallest canary of the rounds that count, minus 1

  // Of contestants and canaries by name.
  const Samples& of(const std::string& name) const;
  Spread seconds(const std::string& name) const;
  // The ratios of the rounds that count: one round's noise is in both.
  Spread ratio(const std::string& numerator, const std::string& denominator) const;
  std::string verdict() const;  // "5 rounds", or why nothing is concluded
};

// Every round starts with another contestant; canaries run before each turn.
Measurement measure(const std::vector<Contestant>& contestants,
                    const std::vector<Contestant>& canaries, const MeasureOptions& options);

// The largest set of rounds in which no canary's values lie further apart than `tolerance`.
std::vector<size_t> quiet_rounds(const std::vector<Samples>& canaries, double tolerance);

}  // namespace rondo
