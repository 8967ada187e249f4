// The training logs of runs (metrics.jsonl) as curves over steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

using Curve = std::map<double, double>;  // by step

// One logged metric; empty if the run did not log it.
Curve read_curve(const std::string& run, const std::string& key);
// All metrics, by name.
std::map<std::string, Curve> read_curves(const std::string& run);

// The metrics by which runs of a task are compared, in this order.
struct LoggedMetric {
  const char* key;
  const char* title;
  bool higher_is_better;
};
std::vector<LoggedMetric> logged_metrics(const std::string& task);
// The best value of a curve; nullopt if it is empty.
std::optional<double> best_of(const Curve& curve, const LoggedMetric& metric);

// The last components of the runs' paths, or the full paths if these are not unique.
std::vector<std::string> short_run_names(const std::vector<std::string>& runs);

}  // namespace rondo
