// Rounds, canaries, medians.
#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>

#include "rondo/base/error.h"

namespace rondo {
namespace {

constexpr int64_t kMostTimes = 1 << 20;

int64_t processor_threads = 0;  // 0: wall clock

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Number of executions for a sample of `wanted` seconds. Also warms up.
int64_t times_for(const Timed& run, double wanted) {
  double took = run(1);  // the first run pays for memory and code
  int64_t times = 1;
  for (took = run(1); took < wanted; took = run(times)) {
    if (std::isnan(took) || times >= kMostTimes) break;
    const double more = took > 0 ? 1.1 * wanted / took : 10.0;
    times = std::min<int64_t>(
        kMostTimes, std::max(times + 1, static_cast<int64_t>(std::min(more, 10.0) *
                                                             static_cast<double>(times))));
  }
  return times;
}

std::vector<Samples> prepare(const std::vector<Contestant>& list, double wanted) {
  std::vector<Samples> samples;
  for (const Contestant& c : list) samples.push_back({c.name, times_for(c.run, wanted), {}});
  return samples;
}

// Rounds in which every canary is between its entry of `lowest` and `tolerance` above it.
std::vector<size_t> rounds_above(const std::vector<Samples>& canaries,
                                 const std::vector<double>& lowest, double tolerance) {
  std::vector<size_t> rounds;
  for (size_t r = 0; r < canaries.front().seconds.size(); ++r) {
    bool within = true;
    for (size_t c = 0; c < canaries.size(); ++c) {
      const double s = canaries[c].seconds[r];
      within = within && s >= lowest[c] && s <= lowest[c] * (1.0 + tolerance);
    }
    if (within) rounds.push_back(r);
  }
  return rounds;
}

double largest_move(const std::vector<Samples>& canaries, const std::vector<size_t>& rounds) {
  double moved = 0;
  for (const Samples& c : canaries) {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const size_t r : rounds) {
      low = std::min(low, c.seconds[r]);
      high = std::max(high, c.seconds[r]);
    }
    if (low > 0 && std::isfinite(low)) moved = std::max(moved, high / low - 1.0);
  }
  return moved;
}

void run_round(size_t round, const std::vector<Contestant>& contestants,
               const std::vector<Contestant>& canaries, Measurement& m) {
  std::vector<double> canary_sums(canaries.size(), 0.0);
  const size_t turns = std::max<size_t>(1, contestants.size());
  for (size_t turn = 0; turn < turns; ++turn) {
    for (size_t c = 0; c < canaries.size(); ++c) {
      const int64_t times = m.canaries[c].times;
      canary_sums[c] += canaries[c].run(times) / static_cast<double>(times);
    }
    if (contestants.empty()) break;
    const size_t which = (round + turn) % contestants.size();
    const int64_t times = m.contestants[which].times;
    m.contestants[which].seconds.push_back(contestants[which].run(times) /
                                           static_cast<double>(times));
  }
  for (size_t c = 0; c < canaries.size(); ++c) {
    m.canaries[c].seconds.push_back(canary_sums[c] / static_cast<double>(turns));
  }
}

}  // namespace

Timed timed(std::function<void()> work) {
  return [work = std::move(work)](int64_t times) {
    const double started = clock_seconds();
    for (int64_t i = 0; i < times; ++i) work();
    return clock_seconds() - started;
  };
}

void use_processor_time(int64_t threads) { processor_threads = threads; }

double clock_seconds() {
  timespec now = {};
  clock_gettime(processor_threads > 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  const double seconds = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return processor_threads > 0 ? seconds / static_cast<double>(processor_threads) : seconds;
}

Spread spread_of(std::vector<double> values) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool whole =
      std::none_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  if (values.empty() || !whole) return {nan, nan, nan};
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

std::vector<size_t> quiet_rounds(const std::vector<Samples>& canaries, double tolerance) {
  if (canaries.empty()) return {};
  const size_t rounds = canaries.front().seconds.size();
  std::vector<size_t> best;
  // The lowest value of each canary in the best set is a measured one: try all combinations.
  std::vector<size_t> pick(canaries.size(), 0);
  for (size_t c = 0; rounds > 0 && c < canaries.size();) {
    std::vector<double> lowest;
    for (size_t i = 0; i < canaries.size(); ++i) lowest.push_back(canaries[i].seconds[pick[i]]);
    std::vector<size_t> found = rounds_above(canaries, lowest, tolerance);
    if (found.size() > best.size()) best = std::move(found);
    for (c = 0; c < canaries.size() && ++pick[c] == rounds; ++c) pick[c] = 0;
  }
  return best;
}

Measurement measure(const std::vector<Contestant>& contestants,
                    const std::vector<Contestant>& canaries, const MeasureOptions& options) {
  Measurement m;
  m.canaries = prepare(canaries, options.canary_seconds);
  m.contestants = prepare(contestants, options.sample_seconds);
  const auto wanted = static_cast<size_t>(options.rounds);
  const auto most = static_cast<size_t>(options.rounds * options.patience);
  for (size_t round = 0; round < most && !m.conclusive; ++round) {
    run_round(round, contestants, canaries, m);
    m.quiet = quiet_rounds(m.canaries, options.canary_tolerance);
    m.conclusive = m.quiet.size() >= wanted;
    if (options.after_round) {
      options.after_round(static_cast<int64_t>(round) + 1, static_cast<int64_t>(m.quiet.size()));
    }
  }
  if (!m.conclusive) {
    m.quiet.resize(m.canaries.empty() ? most : m.canaries.front().seconds.size());
    std::iota(m.quiet.begin(), m.quiet.end(), size_t{0});
  }
  m.canary_moved = largest_move(m.canaries, m.quiet);
  return m;
}

const Samples& Measurement::of(const std::string& name) const {
  for (const auto* list : {&contestants, &canaries}) {
    for (const Samples& s : *list) {
      if (s.name == name) return s;
    }
  }
  throw Error(ExitCode::failure, "no contestant or canary named '" + name + "' was measured");
}

Spread Measurement::seconds(const std::string& name) const {
  const Samples& s = of(name);
  std::vector<double> values;
  for (const size_t r : quiet) values.push_back(s.seconds[r]);
  return spread_of(values);
}

Spread Measurement::ratio(const std::string& numerator, const std::string& denominator) const {
  const Samples& a = of(numerator);
  const Samples& b = of(denominator);
  std::vector<double> values;
  for (const size_t r : quiet) values.push_back(a.seconds[r] / b.seconds[r]);
  return spread_of(values);
}

std::string Measurement::verdict() const {
  const size_t all = canaries.empty() ? quiet.size() : canaries.front().seconds.size();
  if (!conclusive) {
    return fmt::format("inconclusive: canary varied by {:.0f} % over {} rounds",
                       100.0 * canary_moved, all);
  }
  return fmt::format("{} quiet rounds of {}, canary varied by {:.0f} %", quiet.size(), all,
                     100.0 * canary_moved);
}

}  // namespace rondo
