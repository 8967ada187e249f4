// The page of attention distances.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/report/charts.h"
#include "rondo/study/attention_reach.h"

namespace rondo::study {
namespace {

double mean_of(const Tensor& heads) { return heads.mean().item<double>(); }

// A line over levels, with a band from the lowest to the highest head.
Series series_of(const AttentionReach& reach, const std::string& group,
                 Tensor LevelReach::*values) {
  Series series{reach.name};
  double level = 0;
  for (const LevelReach& l : reach.levels) {
    if (l.group != group) continue;
    ++level;
    if (!(l.*values).defined()) continue;
    series.points.emplace_back(level, mean_of(l.*values));
    series.band.emplace_back((l.*values).min().item<double>(), (l.*values).max().item<double>());
  }
  return series;
}

// The greatest distance of a head of any network: their maps share one color scale.
double farthest_head(const std::vector<AttentionReach>& found, const std::string& group) {
  double farthest = 0;
  for (const AttentionReach& reach : found) {
    for (const LevelReach& l : reach.levels) {
      if (l.group == group) farthest = std::max(farthest, l.distance.max().item<double>());
    }
  }
  return farthest;
}

void draw_heads(Page& page, const AttentionReach& reach, const std::string& group,
                const std::string& unit, double farthest) {
  HeatMap map;
  map.title = fmt::format("Attention distance of every head of {}, {}", reach.name, group);
  map.x_label = "head";
  map.y_label = "level";
  map.legend = unit;
  map.low = 0;
  map.high = farthest;
  size_t heads = 0;
  for (const LevelReach& l : reach.levels) {
    if (l.group != group) continue;
    map.rows.push_back(l.label);
    map.values.push_back(list_of(l.distance));
    heads = std::max(heads, map.values.back().size());
  }
  for (auto& row : map.values) row.resize(heads, std::nan(""));
  for (size_t h = 0; h < heads; ++h) map.columns.push_back(std::to_string(h + 1));
  page.figure(heat_map(map), fmt::format("{}: attention distance of every head.", reach.name));
}

// One chart of all networks, if any has the values.
void draw_lines(Page& page, const std::vector<AttentionReach>& found, const std::string& group,
                Tensor LevelReach::*values, const std::string& label, const std::string& caption) {
  LineChart chart;
  chart.x.label = "level";
  chart.x.whole = true;
  chart.y.label = label;
  chart.y.low = 0;
  chart.marks = true;
  bool any = false;
  for (const AttentionReach& reach : found) {
    chart.series.push_back(series_of(reach, group, values));
    any = any || !chart.series.back().points.empty();
  }
  if (any) page.figure(line_chart(chart), caption);
}

void draw_group(Page& page, const std::vector<AttentionReach>& found, const std::string& group,
                const std::string& unit) {
  page.heading(group == "levels" ? "By level" : group);
  const auto draw = [&](Tensor LevelReach::*values, const std::string& label,
                        const std::string& caption) {
    draw_lines(page, found, group, values, label, caption);
  };
  draw(&LevelReach::distance, "attention distance (" + unit + ")", "Attention distance.");
  draw(&LevelReach::entropy, "attention entropy (nats)",
       "Attention entropy: 0 for a single token, the logarithm of their number for uniform "
       "attention.");
  draw(&LevelReach::state_share, "share from recurrent states",
       "Share of a token's attention output that comes from the recurrent states, by norm.");
  draw(&LevelReach::memory_share, "share of attention to memory",
       "Share of a token's attention that goes to the memory, given by the gates of the heads; 0 "
       "while the memory is empty.");
  draw(&LevelReach::memory_distance, "distance to memory (" + unit + ")",
       "Attention distance to the entries of the memory.");
  const double farthest = farthest_head(found, group);
  for (const AttentionReach& reach : found) draw_heads(page, reach, group, unit, farthest);
}

nlohmann::json level_json(const LevelReach& l) {
  nlohmann::json level = {{"group", l.group},
                          {"level", l.label},
                          {"distance", json_of(l.distance)},
                          {"entropy", json_of(l.entropy)}};
  const auto add = [&](const char* name, const Tensor& values) {
    if (values.defined()) level[name] = json_of(values);
  };
  add("state_share", l.state_share);
  add("state_entropy", l.state_entropy);
  add("memory_share", l.memory_share);
  add("memory_distance", l.memory_distance);
  add("memory_entropy", l.memory_entropy);
  return level;
}

std::string level_line(const AttentionReach& reach, const LevelReach& l, const std::string& unit) {
  std::string line = fmt::format("{} {} {}: distance {:.2f} {}, entropy {:.2f}", reach.name,
                                 l.group, l.label, mean_of(l.distance), unit, mean_of(l.entropy));
  if (l.state_share.defined()) {
    line += fmt::format("; share from states {:.3f}", mean_of(l.state_share));
  }
  if (l.memory_distance.defined()) {
    line += fmt::format("; memory: share {:.3f}, distance {:.1f}", mean_of(l.memory_share),
                        mean_of(l.memory_distance));
  }
  return line + "\n";
}

}  // namespace

StudyReport reach_report(const std::vector<AttentionReach>& found) {
  StudyReport report("Attention distance");
  const std::string unit = found.front().pixels ? "pixels" : "tokens";
  report.page.paragraph(fmt::format(
      "The attention-weighted distance in {} from a token to those it attends to, averaged over {} "
      "items. Lines are means over heads, bands span the lowest to the highest head.",
      unit, found.front().items));
  std::vector<std::string> groups;
  for (const LevelReach& l : found.front().levels) {
    if (groups.empty() || groups.back() != l.group) groups.push_back(l.group);
  }
  for (const std::string& group : groups) draw_group(report.page, found, group, unit);
  for (const AttentionReach& reach : found) {
    nlohmann::json run = {{"name", reach.name}, {"unit", unit}, {"items", reach.items}};
    for (const LevelReach& l : reach.levels) {
      run["levels"].push_back(level_json(l));
      report.summary += level_line(reach, l, unit);
    }
    report.numbers["runs"].push_back(run);
  }
  return report;
}

}  // namespace rondo::study
