// Races, and the list of cases.
#include "bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

// Converts seconds per `amount` into amount per second.
Spread rate_of(double amount, const Spread& seconds) {
  return {amount / seconds.median, amount / seconds.high, amount / seconds.low};
}

}  // namespace

const std::vector<BenchCase>& bench_cases() {
  static const std::vector<BenchCase> cases = [] {
    std::vector<BenchCase> all;
    add_language_cases(all);
    add_recurrence_cases(all);
    add_translation_cases(all);
    add_image_cases(all);
    add_memory_cases(all);
    add_step_time_cases(all);
    return all;
  }();
  return cases;
}

std::vector<BenchCase> find_bench_cases(const std::vector<std::string>& names) {
  std::vector<BenchCase> found;
  std::vector<std::string> known;
  for (const BenchCase& c : bench_cases()) known.push_back(c.name);
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      throw Error(ExitCode::usage, fmt::format("bench: unknown case '{}'", printable(name)),
                  "the cases are " + join(known, ", "));
    }
    found.push_back(bench_cases()[static_cast<size_t>(at - known.begin())]);
  }
  return found;
}

Race::Race(std::string name, const BenchOptions& options)
    : name_(std::move(name)), options_(options) {
  limit(matmul_limit(/*bf16=*/false));
  limit(copy_limit());
}

void Race::ours(const std::string& name, double units, const std::string& unit,
                std::function<void()> work) {
  entries_.push_back({name, unit, units, timed(std::move(work)), false});
}

void Race::ours(const std::string& name, double units, const std::string& unit, Timed run) {
  entries_.push_back({name, unit, units, std::move(run), false});
}

void Race::peer(const std::string& name, double units, const std::string& unit,
                const std::string& script, const std::vector<std::string>& arguments,
                int64_t parameters) {
  if (!options_.peers) return;
  const auto started = std::make_shared<Peer>(options_.peer, script, arguments);
  if (!started->ready()) return note(started->trouble() + ": no ratios to " + name);
  const int64_t found = started->metadata().value("parameters", int64_t{0});
  if (parameters > 0 && found != parameters) {
    return note(fmt::format("{} is a different network: {} parameters instead of {}", name,
                            with_commas(found), with_commas(parameters)));
  }
  peers_.push_back(started);
  entries_.push_back(
      {name, unit, units, [started](int64_t times) { return started->go(times); }, true});
}

void Race::limit(const Limit& limit) {
  if (find_limit(limit.name) == nullptr) limits_.push_back(limit);
}

void Race::share(const std::string& name, double work, const std::string& limit, double bound) {
  const Limit* of = find_limit(limit);
  RONDO_ASSERT(of != nullptr);
  if (find(name) == nullptr || of->amount <= 0) return;
  claims_.push_back(
      {name + ": share of " + limit, name, limit, work / of->amount, bound, /*at_least=*/true});
}

void Race::faster(const std::string& name, const std::string& than, double bound) {
  const Entry* a = find(name);
  const Entry* b = find(than);
  if (a == nullptr || b == nullptr) return;
  claims_.push_back({name + ": speed over " + than, name, than, a->units / b->units, bound,
                     /*at_least=*/true});
}

void Race::cost(const std::string& name, const std::string& over, double bound) {
  const Entry* a = find(name);
  const Entry* b = find(over);
  if (a == nullptr || b == nullptr) return;
  claims_.push_back({name + ": time over " + over, over, name, b->units / a->units, bound,
                     /*at_least=*/false});
}

const Race::Entry* Race::find(const std::string& name) const {
  for (const Entry& e : entries_) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

const Limit* Race::find_limit(const std::string& name) const {
  for (const Limit& l : limits_) {
    if (l.name == name) return &l;
  }
  return nullptr;
}

void Race::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

void Race::fill(const Measurement& m, BenchResult& result) const {
  for (const Entry& e : entries_) {
    const Spread seconds = m.seconds(e.name);
    result.lines.push_back({e.name, e.unit, rate_of(e.units, seconds), seconds, e.peer});
  }
  for (const Limit& l : limits_) {
    const Spread seconds = m.seconds(l.name);
    result.canaries.push_back({l.name, l.unit, rate_of(l.amount, seconds), seconds, false});
  }
  for (const Claim& c : claims_) {
    Spread value = m.ratio(c.bottom, c.top);
    for (double* v : {&value.median, &value.low, &value.high}) *v *= c.factor;
    if (std::isnan(value.median)) continue;
    result.claims.push_back({c.what, value, c.bound, c.at_least, m.conclusive});
  }
}

BenchResult Race::run() {
  std::vector<Contestant> contestants;
  std::vector<Contestant> canaries;
  for (const Entry& e : entries_) contestants.push_back({e.name, e.run});
  for (const Limit& l : limits_) canaries.push_back({l.name, l.run});
  Progress progress(name_ + ": quiet rounds", options_.measure.rounds);
  MeasureOptions how = options_.measure;
  how.after_round = [&](int64_t rounds, int64_t quiet) {
    progress.update(quiet, fmt::format("round {}", rounds));
  };
  const Measurement m = measure(contestants, canaries, how);
  for (const auto& peer : peers_) {
    if (!peer->ready()) note(peer->trouble());
  }
  BenchResult result;
  result.name = name_;
  result.canary_moved = m.canary_moved;
  result.conclusive = m.conclusive;
  result.verdict = m.verdict();
  result.notes = notes_;
  fill(m, result);
  return result;
}

}  // namespace rondo
