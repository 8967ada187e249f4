// Reading run logs.
#include "rondo/report/run_curves.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace rondo {

Curve read_curve(const std::string& run, const std::string& key) {
  std::map<std::string, Curve> all = read_curves(run);
  return all[key];
}

std::map<std::string, Curve> read_curves(const std::string& run) {
  std::map<std::string, Curve> curves;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) continue;
    for (const auto& [key, value] : json.items()) {
      if (value.is_number()) curves[key][json["step"]] = value;
    }
  }
  return curves;
}

std::vector<LoggedMetric> logged_metrics(const std::string& task) {
  if (task == "image") {
    return {{"valid_accuracy", "accuracy on validation images (%)", true},
            {"valid_loss", "loss on validation images", false}};
  }
  if (task == "translation") return {{"valid_loss", "loss on validation pairs", false}};
  return {{"valid_bits_per_token", "bits per token on validation text", false}};
}

std::optional<double> best_of(const Curve& curve, const LoggedMetric& metric) {
  if (curve.empty()) return std::nullopt;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return metric.higher_is_better ? std::max_element(curve.begin(), curve.end(), less)->second
                                 : std::min_element(curve.begin(), curve.end(), less)->second;
}

std::vector<std::string> short_run_names(const std::vector<std::string>& runs) {
  std::vector<std::string> names;
  for (const std::string& run : runs) {
    const std::filesystem::path path = std::filesystem::path(run).lexically_normal();
    names.push_back(
        (path.has_filename() ? path.filename() : path.parent_path().filename()).string());
  }
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() ? names : runs;
}

}  // namespace rondo
