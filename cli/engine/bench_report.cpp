// Reports of rondo bench.
#include "cli/engine/bench_report.h"

#include <fmt/format.h>

#include "rondo/base/text.h"
#include "rondo/nn/precision.h"

namespace rondo::cli {
namespace {

std::string rate_text(double rate, const std::string& unit) {
  const std::string number = si_count(rate);
  if (unit == "flop") return number + "FLOP/s";
  if (unit == "byte") return number + "B/s";
  return number + (number.find(' ') == std::string::npos ? " " : "") + unit + "/s";
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

const char* outcome_of(const BenchClaim& c) {
  if (c.bound <= 0) return "reported";
  if (!c.conclusive) return "inconclusive";
  return c.met() ? "met" : "missed";
}

nlohmann::json spread_json(const Spread& s) {
  return {{"median", s.median}, {"low", s.low}, {"high", s.high}};
}

nlohmann::json line_json(const BenchLine& line) {
  return {{"name", line.name},
          {"unit", line.unit},
          {"peer", line.peer},
          {"per_second", spread_json(line.per_second)},
          {"seconds", spread_json(line.seconds)}};
}

}  // namespace

MachineLimits measure_limits() {
  MachineLimits all;
  const auto add = [&](const std::string& name, const Limit& limit) {
    all.entries.push_back({name, limit.unit, best_rate(limit)});
  };
  add("fp32 matmul", matmul_limit(false));
  if (nn::cpu_has_bf16()) add("bf16 matmul", matmul_limit(true));
  add("copy", copy_limit());
  for (const MemoryLevel& level : memory_levels()) {
    const Limit limit = read_limit(level.bytes);
    add(fmt::format("read {} ({})", level.name, human_bytes(level.bytes)), limit);
  }
  return all;
}

std::string describe(const MachineDescription& m, int64_t threads) {
  return fmt::format("machine  {}, {} cores, {} used, {}; {}; load {:.1f} before\n", m.cpu, m.cores,
                     threads, human_bytes(m.memory_bytes), join(m.instruction_sets, " "), m.load);
}

std::string describe(const MachineLimits& limits) {
  std::string text = "limits   ";
  for (size_t i = 0; i < limits.entries.size(); ++i) {
    const auto& e = limits.entries[i];
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", e.name, rate_text(e.rate, e.unit));
  }
  return text + "\n";
}

std::string describe(const BenchCase& which, const BenchResult& r) {
  std::string text = fmt::format("\n{}: {}\n", r.name, which.about);
  for (const BenchLine& line : r.lines) {
    text +=
        fmt::format("  {:<34} {:>16}   {} ({} to {})\n", line.name,
                    rate_text(line.per_second.median, line.unit), seconds_text(line.seconds.median),
                    seconds_text(line.seconds.low), seconds_text(line.seconds.high));
  }
  for (const BenchClaim& c : r.claims) {
    const std::string target =
        c.bound <= 0 ? "" : fmt::format("{} {:.2f}", c.at_least ? "at least" : "at most", c.bound);
    text += fmt::format("  {:<44} {:>6.2f} ({:.2f} to {:.2f})  {:<14} {}\n", c.what, c.value.median,
                        c.value.low, c.value.high, target, outcome_of(c));
  }
  for (const std::string& note : r.notes) text += "  " + note + "\n";
  if (!r.verdict.empty()) text += "  " + r.verdict + "\n";
  return text;
}

nlohmann::json to_json(const MachineDescription& m, int64_t threads) {
  return {{"cpu", m.cpu},
          {"cores", m.cores},
          {"threads", threads},
          {"memory_bytes", m.memory_bytes},
          {"instruction_sets", m.instruction_sets},
          {"load", m.load}};
}

nlohmann::json to_json(const MachineLimits& limits) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& e : limits.entries) {
    all.push_back({{"name", e.name}, {"unit", e.unit}, {"per_second", e.rate}});
  }
  return all;
}

nlohmann::json to_json(const BenchResult& r) {
  nlohmann::json lines = nlohmann::json::array();
  nlohmann::json canaries = nlohmann::json::array();
  nlohmann::json claims = nlohmann::json::array();
  for (const BenchLine& line : r.lines) lines.push_back(line_json(line));
  for (const BenchLine& line : r.canaries) canaries.push_back(line_json(line));
  for (const BenchClaim& c : r.claims) {
    nlohmann::json claim = {
        {"what", c.what}, {"value", spread_json(c.value)}, {"outcome", outcome_of(c)}};
    if (c.bound > 0) claim[c.at_least ? "at_least" : "at_most"] = c.bound;
    claims.push_back(std::move(claim));
  }
  return {{"name", r.name},
          {"lines", lines},
          {"claims", claims},
          {"canaries", canaries},
          {"canary_moved", r.canary_moved},
          {"conclusive", r.conclusive},
          {"verdict", r.verdict},
          {"notes", r.notes}};
}

}  // namespace rondo::cli
