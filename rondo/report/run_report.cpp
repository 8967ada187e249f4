// The comparison report of runs.
#include "rondo/report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/train_config_continue.h"
#include "rondo/config/trained_files.h"
#include "rondo/report/charts.h"
#include "rondo/report/page.h"
#include "rondo/report/run_curves.h"

namespace rondo {
namespace {

constexpr const char* kNothing = "–";

struct Run {
  std::string name;
  RunConfig config;
  std::map<std::string, Curve> curves;
  nlohmann::json record;  // run.json
  std::string task() const { return config.model.task(); }
};

Run read_run(const std::string& path, const std::string& name) {
  Run run;
  run.name = name;
  run.config = read_run_folder(path);
  run.curves = read_curves(path);
  if (exists(path + "/run.json")) {
    run.record =
        nlohmann::json::parse(read_text_file(path + "/run.json", int64_t{1} << 20), nullptr, false);
  }
  if (!run.record.is_object()) run.record = nlohmann::json::object();
  return run;
}

double last_of(const Run& run, const std::string& key) {
  const auto found = run.curves.find(key);
  return found == run.curves.end() || found->second.empty() ? 0 : found->second.rbegin()->second;
}

// The metrics of all tasks among the runs, without duplicates.
std::vector<LoggedMetric> metrics_of(const std::vector<Run>& runs) {
  std::vector<LoggedMetric> metrics;
  for (const Run& run : runs) {
    for (const LoggedMetric& m : logged_metrics(run.task())) {
      const auto same = [&](const LoggedMetric& o) { return std::string(o.title) == m.title; };
      if (std::none_of(metrics.begin(), metrics.end(), same)) metrics.push_back(m);
    }
  }
  return metrics;
}

std::optional<double> best_of_run(const Run& run, const LoggedMetric& metric) {
  const auto own = logged_metrics(run.task());
  const auto same = [&](const LoggedMetric& o) { return std::string(o.title) == metric.title; };
  const auto found = run.curves.find(metric.key);
  if (std::none_of(own.begin(), own.end(), same) || found == run.curves.end()) return std::nullopt;
  return best_of(found->second, metric);
}

std::vector<std::vector<std::string>> score_table(const std::vector<Run>& runs) {
  const std::vector<LoggedMetric> metrics = metrics_of(runs);
  std::vector<std::vector<std::string>> lines = {
      {"run", "parameters", "multiply-adds", "steps", "minutes", "last loss"}};
  for (const LoggedMetric& m : metrics) lines[0].push_back(fmt::format("best {}", m.title));
  for (const Run& run : runs) {
    const double parameters = run.record.value("parameters", 0.0);
    const double work = run.record.value("multiply_adds", 0.0);
    std::vector<std::string> line = {run.name,
                                     parameters > 0 ? si_count(parameters) : kNothing,
                                     work > 0 ? si_count(work) : kNothing,
                                     fmt::format("{:.0f}", last_of(run, "step")),
                                     fmt::format("{:.1f}", last_of(run, "seconds") / 60),
                                     fmt::format("{:.4f}", last_of(run, "loss"))};
    for (const LoggedMetric& m : metrics) {
      const auto best = best_of_run(run, m);
      line.push_back(best.has_value() ? fmt::format("{:.4f}", *best) : kNothing);
    }
    lines.push_back(line);
  }
  return lines;
}

// Configuration keys whose values differ between runs.
std::vector<std::vector<std::string>> difference_table(const std::vector<Run>& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const DumpedKey& key : dumped_keys(runs[i].config)) {
      auto [found, is_new] = values.try_emplace(key.key, runs.size(), kNothing);
      if (is_new) order.push_back(key.key);
      found->second[i] = key.value;
    }
  }
  std::vector<std::vector<std::string>> lines = {{"key"}};
  for (const Run& run : runs) lines[0].push_back(run.name);
  for (const std::string& key : order) {
    const std::vector<std::string>& all = values.at(key);
    if (std::all_of(all.begin(), all.end(), [&](const auto& v) { return v == all.front(); })) {
      continue;
    }
    lines.push_back({key});
    lines.back().insert(lines.back().end(), all.begin(), all.end());
  }
  return lines;
}

std::string curve_chart(const std::vector<Run>& runs, const std::string& key,
                        const std::string& label, bool log) {
  LineChart chart;
  chart.x.label = "step";
  chart.y = {label, log};
  bool any = false;
  for (const Run& run : runs) {
    Series series{run.name};
    const auto found = run.curves.find(key);
    if (found != run.curves.end()) {
      series.points.assign(found->second.begin(), found->second.end());
    }
    any = any || !series.points.empty();
    chart.series.push_back(std::move(series));
  }
  return any ? line_chart(chart) : "";
}

nlohmann::json table_json_of(const std::vector<std::vector<std::string>>& lines) {
  nlohmann::json json = nlohmann::json::array();
  for (size_t i = 1; i < lines.size(); ++i) {
    nlohmann::json row;
    for (size_t c = 0; c < lines[i].size(); ++c) row[lines[0][c]] = lines[i][c];
    json.push_back(row);
  }
  return json;
}

}  // namespace

RunReport report_runs(const std::vector<std::string>& paths) {
  const std::vector<std::string> names = short_run_names(paths);
  std::vector<Run> runs;
  for (size_t i = 0; i < paths.size(); ++i) runs.push_back(read_run(paths[i], names[i]));
  Page page(runs.size() == 1 ? "Run " + names[0] : "Run comparison");
  const auto scores = score_table(runs);
  const auto differences = difference_table(runs);
  page.table(scores);
  for (const LoggedMetric& m : metrics_of(runs)) {
    const std::string chart = curve_chart(runs, m.key, m.title, false);
    if (!chart.empty()) page.figure(chart, fmt::format("{}.", m.title));
  }
  const char* kCurves[][2] = {
      {"loss", "training loss"}, {"gradient_norm", "gradient norm"}, {"rate", "learning rate"}};
  for (const auto& [key, label] : kCurves) {
    const std::string chart = curve_chart(runs, key, label, std::string(key) == "gradient_norm");
    if (!chart.empty()) page.figure(chart, fmt::format("{}.", label));
  }
  if (runs.size() > 1) {
    page.heading("Configuration differences");
    differences.size() > 1 ? page.table(differences) : page.paragraph("None.");
  }
  nlohmann::json json = {{"runs", table_json_of(scores)}};
  if (runs.size() > 1) json["differences"] = table_json_of(differences);
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [key, curve] : runs[i].curves) {
      if (key != "step") json["runs"][i]["curves"][key] = curve;
    }
  }
  std::string text;
  for (const auto& line : scores) text += join(line, "  ") + "\n";
  return {page.html(), json.dump(2) + "\n", text};
}

}  // namespace rondo
