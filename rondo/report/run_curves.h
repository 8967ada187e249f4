// What runs logged while they were trained (metrics.jsonl), as curves over steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

using Curve = std::map<double, double>;  // by step

// One logged number; empty if the run has none of that name.
Curve read_curve(const std::string& run, const std::string& key);
// All of them, by name.
std::map<std::string, Curve> read_curves(const std::string& run);

// The numbers of a task by which its runs are judged, in this order.
struct LoggedMetric {
  const char* key;
  const char* title;
  bool higher_is_better;
};
std::vector<LoggedMetric> logged_metrics(const std::string& task);
// The best value of a curve; nothing if it is empty.
std::optional<double> best_of(const Curve& curve, const LoggedMetric& metric);

// The last parts of the runs' paths, or all of them where these are the same.
std::vector<std::string> short_run_names(const std::vector<std::string>& runs);

}  // namespace rondo
