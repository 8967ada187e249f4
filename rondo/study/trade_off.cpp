// Counts the cost of sliced networks; plots costs against scores.
#include "rondo/study/trade_off.h"

#include <fmt/format.h>

#include <set>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/report/charts.h"

namespace rondo::study {
namespace {

// Multiply-adds of scores and values alone, the subject of Theorem 1.
class AttentionWork : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& name, double count) override {
    const auto ends = [&](std::string_view end) {
      return name.size() >= end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    if (ends(".scores") || ends(".values")) attention += count;
    all += count;
  }
  double attention = 0, all = 0;
};

RecursiveConfig* recursive_of(ModelConfig& config) {
  return std::visit(
      [](auto& network) -> RecursiveConfig* {
        return network.depth.scheme == "recursive" ? &network.depth.recursive : nullptr;
      },
      config.network);
}

void add_theorem(Page& page, const RunCost& run) {
  LineChart chart;
  chart.title = fmt::format("Multiply-adds of attention in {} by groups and loops", run.name);
  chart.x = {"groups", true};
  chart.y = {"multiply-adds of attention", true};
  chart.marks = true;
  std::set<int64_t> loops;
  double global = 0;
  for (const SlicedCostPoint& p : run.sliced) {
    loops.insert(p.loops);
    if (p.loops == 1 && p.groups == 1) global = p.attention;
  }
  for (const int64_t l : loops) {
    Series series{fmt::format("{} loop{}", l, l == 1 ? "" : "s")};
    for (const SlicedCostPoint& p : run.sliced) {
      if (p.loops == l) series.points.emplace_back(static_cast<double>(p.groups), p.attention);
    }
    chart.series.push_back(series);
  }
  Series line{"global, 1 loop"};
  for (const SlicedCostPoint& p : run.sliced) {
    if (p.loops == 1) line.points.emplace_back(static_cast<double>(p.groups), global);
  }
  chart.series.push_back(line);
  page.figure(line_chart(chart),
              fmt::format("{}: N loops of G groups cost N/G of global attention applied once: the "
                          "same if N = G (Theorem 1).",
                          run.name));
}

std::string scores_against(const std::vector<RunCost>& found, const std::string& metric,
                           double RunCost::*cost, const char* label) {
  ScatterChart chart;
  chart.x = {label, true};
  chart.y.label = metric;
  for (const RunCost& run : found) {
    if (run.metric != metric || !run.score.has_value()) continue;
    chart.points.push_back({run.name, run.*cost, *run.score, chart.points.size(), {}});
  }
  return chart.points.size() < 2 ? "" : scatter_chart(chart);
}

}  // namespace

std::vector<SlicedCostPoint> sliced_costs(const ModelConfig& config,
                                          const std::vector<int64_t>& loops,
                                          const std::vector<int64_t>& groups) {
  std::vector<SlicedCostPoint> points;
  ModelConfig changed = config;
  RecursiveConfig* recursive = recursive_of(changed);
  if (recursive == nullptr) return points;
  const nn::ShapesOnly shapes_only;
  const at::NoGradGuard no_grad;
  for (const int64_t l : loops) {
    for (const int64_t g : groups) {
      recursive->loops = {l};
      recursive->groups = {{g}};
      AttentionWork work;
      try {
        const auto network = build_network(changed);
        network->eval();
        State state;
        network->forward(network->example(0), state, Scope(&work));
      } catch (const Error&) {
        continue;  // these groups do not divide the tokens
      }
      points.push_back({l, g, work.attention, work.all});
    }
  }
  return points;
}

StudyReport cost_report(const std::vector<RunCost>& found) {
  StudyReport report("Cost and quality of models");
  std::vector<std::vector<std::string>> lines = {
      {"run", "parameters", "multiply-adds", "best score", "of"}};
  std::set<std::string> metrics;
  for (const RunCost& run : found) {
    lines.push_back({run.name, si_count(run.parameters), si_count(run.multiply_adds),
                     run.score.has_value() ? fmt::format("{:.4f}", *run.score) : "–", run.metric});
    metrics.insert(run.metric);
    nlohmann::json numbers = {{"name", run.name},
                              {"parameters", run.parameters},
                              {"multiply_adds", run.multiply_adds},
                              {"metric", run.metric}};
    if (run.score.has_value()) numbers["score"] = *run.score;
    for (const SlicedCostPoint& p : run.sliced) {
      numbers["sliced"].push_back({{"loops", p.loops},
                                   {"groups", p.groups},
                                   {"attention", p.attention},
                                   {"multiply_adds", p.multiply_adds}});
    }
    report.numbers["runs"].push_back(numbers);
    report.summary +=
        fmt::format("{}: {} parameters, {} multiply-adds, {}\n", run.name, si_count(run.parameters),
                    si_count(run.multiply_adds), lines.back()[3]);
  }
  report.page.table(lines);
  for (const RunCost& run : found) {
    if (!run.sliced.empty()) add_theorem(report.page, run);
  }
  for (const std::string& metric : metrics) {
    for (const auto& [cost, label] : {std::pair(&RunCost::parameters, "parameters"),
                                      std::pair(&RunCost::multiply_adds, "multiply-adds")}) {
      const std::string chart = scores_against(found, metric, cost, label);
      if (!chart.empty()) report.page.figure(chart, fmt::format("{} against {}.", metric, label));
    }
  }
  return report;
}

}  // namespace rondo::study
