// Parses the names of logged metrics and plots them in groups.
#include "rondo/study/coefficients.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/report/charts.h"

namespace rondo::study {
namespace {

struct TraceName {
  std::string group;
  std::string label;
  int64_t order = 0;  // within the group
};

int64_t number_of(const std::string& part) {
  const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  return digits && part.size() < 10 ? std::stoll(part) : -1;
}

// The stack of a path as text, and where the rest begins: "stage.0.residual…" → "stage 1".
std::string stack_of(const std::vector<std::string>& parts, size_t& rest) {
  if (parts.size() > 1 && parts[0] == "stage" && number_of(parts[1]) >= 0) {
    rest = 2;
    return fmt::format("stage {}", number_of(parts[1]) + 1);
  }
  rest = 1;
  return parts[0] == "stack" ? "levels" : parts[0];
}

// "stage.0.residual.3.identity.1", "stage.0.projection.5.residual.branch.0".
TraceName coefficient_name(const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  size_t at = 0;
  const std::string stack = stack_of(parts, at);
  if (parts.size() < at + 4) return {stack, path, 0};
  const std::string& branch = parts[parts.size() - 2];
  const int64_t owner = number_of(parts[at + 1]);
  const int64_t order = 10000 * std::max<int64_t>(0, number_of(parts[1])) + owner;
  if (parts[at] == "projection") {
    return {fmt::format("projections, {} coefficient", branch),
            fmt::format("{}, projection {}", stack, owner + 1), order};
  }
  const int64_t sublayer = number_of(parts.back());
  return {
      fmt::format("{}, {} coefficient", sublayer == 0 ? "token mixing" : "feed-forward", branch),
      fmt::format("{}, block {}", stack, owner + 1), order};
}

// "encoder.signal.3.query".
TraceName signal_name(const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  size_t at = 0;
  const std::string stack = stack_of(parts, at);
  if (parts.size() < at + 3) return {stack, path, 0};
  const int64_t level = number_of(parts[at + 1]);
  return {fmt::format("{}: norm of the {} signal", stack, parts.back()),
          fmt::format("level {}", level + 1), level};
}

TraceName name_of(const std::string& key) {
  const size_t slash = key.find('/');
  const std::string kind = slash == std::string::npos ? "" : key.substr(0, slash);
  const std::string path = slash == std::string::npos ? "" : key.substr(slash + 1);
  if (kind == "coefficient") return coefficient_name(path);
  if (kind == "signal") return signal_name(path);
  if (kind == "gate") return {"gates, mean fraction kept", path, 0};
  return {};
}

}  // namespace

std::vector<TraceGroup> read_coefficients(const std::string& run) {
  struct Ordered {
    int64_t order;
    Trace trace;
  };
  std::map<std::string, std::map<std::string, Ordered>> groups;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    for (const auto& [key, value] : json.items()) {
      const TraceName name = name_of(key);
      if (name.group.empty() || !value.is_number()) continue;
      Ordered& found = groups[name.group][key];
      found.order = name.order;
      found.trace.label = name.label;
      found.trace.points.emplace_back(json.value("step", 0.0), value.get<double>());
    }
  }
  std::vector<TraceGroup> result;
  for (auto& [title, traces] : groups) {
    std::vector<Ordered> sorted;
    for (auto& [key, trace] : traces) sorted.push_back(std::move(trace));
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Ordered& a, const Ordered& b) { return a.order < b.order; });
    result.push_back({title, {}});
    for (Ordered& o : sorted) result.back().traces.push_back(std::move(o.trace));
  }
  if (result.empty()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: its log has no coefficients, gates or signals", run),
                "the network has none, or the run is older than their logging; choose a run "
                "folder of a network with learnable residual coefficients, gates or level signals");
  }
  return result;
}

StudyReport coefficients_report(const std::vector<RunCoefficients>& found) {
  StudyReport report("Coefficients, gates and signals during training");
  report.page.paragraph(
      "Residual coefficients start at 1: above it a branch is amplified, below it damped. Signals "
      "start at 0; their norms are those of the matrices that levels add to shared weights.");
  for (const RunCoefficients& run : found) {
    nlohmann::json numbers = {{"name", run.name}};
    report.page.heading(run.name);
    for (const TraceGroup& group : run.groups) {
      LineChart chart;
      chart.title = run.name + ", " + group.title;
      chart.x.label = "step";
      chart.y.label = group.title;
      for (const Trace& trace : group.traces) {
        chart.series.push_back({trace.label, trace.points, {}});
        numbers["traces"].push_back(
            {{"group", group.title}, {"label", trace.label}, {"points", trace.points}});
        report.summary +=
            fmt::format("{} {}, {}: {:.4f} to {:.4f}\n", run.name, group.title, trace.label,
                        trace.points.front().second, trace.points.back().second);
      }
      report.page.figure(line_chart(chart), group.title + ".");
    }
    report.numbers["runs"].push_back(numbers);
  }
  return report;
}

}  // namespace rondo::study
