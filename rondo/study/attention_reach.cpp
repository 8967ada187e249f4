// Reduces attention probabilities to a few numbers during the forward pass.
#include "rondo/study/attention_reach.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/report/charts.h"
#include "rondo/study/attention_distance.h"

namespace rondo::study {
namespace {

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// Sums over the queries that count, per head.
struct Sums {
  Tensor distance, entropy, state_share, state_entropy;  // [H]
  double queries = 0, shared = 0, read = 0;
};

void add_to(Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; }

// Patches of an image: a square grid, possibly preceded by a class token.
struct PatchGrid {
  explicit PatchGrid(int64_t tokens) {
    side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
    skip = tokens - side * side;
  }
  int64_t side, skip;
};

class ReachObserver : public Observer {
 public:
  explicit ReachObserver(int64_t image_side) : image_side_(image_side) {}

  // The batch of the next forward pass, which says which rows and tokens count.
  void begin(const Batch& batch) { batch_ = &batch; }

  bool wants(const std::string& name) override {
    return ends_with(name, ".mixing.probabilities") || ends_with(name, ".mixing.permutation") ||
           ends_with(name, ".mixing.states.probabilities") ||
           ends_with(name, ".mixing.window_heads") || ends_with(name, ".mixing.state_heads");
  }

  void activation(const std::string& name, const Tensor& value) override {
    const size_t end = name.find(".mixing.");
    const std::string scope = name.substr(0, end);
    const std::string what = name.substr(end + 8);
    if (what == "permutation") {
      permutations_[scope] = value;
    } else if (what == "probabilities") {
      image_side_ > 0 ? add_patches(scope, value) : add_tokens(scope, value);
    } else if (what == "states.probabilities") {
      Sums& sums = sums_[scope];
      add_to(sums.state_entropy, entropy_by_query(value).sum(c10::IntArrayRef{0, 2}));
      sums.read += static_cast<double>(value.size(0) * value.size(2));
    } else if (what == "window_heads") {
      window_norms_[scope] = value.norm(2, -1);  // [B, H, T]
    } else {
      add_share(scope, value.norm(2, -1));
    }
  }

  const std::map<std::string, Sums>& sums() const { return sums_; }

 private:
  static Tensor entropy_by_query(const Tensor& p) {  // [B, H, Tq]
    return -at::xlogy(p, p).sum(3).to(at::kDouble);
  }

  // p [B, H, Tq, Tk], distances [B or 1, Tq, Tk], weights of queries [B, Tq].
  void add(const std::string& scope, const Tensor& p, const Tensor& distances,
           const Tensor& weights) {
    Sums& sums = sums_[scope];
    const Tensor w = weights.unsqueeze(1);  // [B, 1, Tq]
    const Tensor reach = (p * distances.unsqueeze(1)).sum(3).to(at::kDouble);
    add_to(sums.distance, (reach * w).sum(c10::IntArrayRef{0, 2}));
    add_to(sums.entropy, (entropy_by_query(p) * w).sum(c10::IntArrayRef{0, 2}));
    sums.queries += weights.sum().item<double>();
  }

  // Groups of patches [B · G, H, n, n], permuted if a permutation was observed.
  void add_patches(const std::string& scope, const Tensor& p) {
    const int64_t groups = p.size(0) / batch_->rows;
    const int64_t each = p.size(2);
    const int64_t tokens = groups * each;
    const PatchGrid grid(tokens);
    const double patch = static_cast<double>(image_side_) / static_cast<double>(grid.side);
    Tensor all = at::zeros({tokens, tokens}, at::kDouble);
    all.slice(0, grid.skip).slice(1, grid.skip).copy_(patch_distances(grid.side, grid.side, patch));
    Tensor counts = at::ones({tokens}, at::kDouble);
    counts.slice(0, 0, grid.skip).zero_();
    const auto found = permutations_.find(scope);
    if (found != permutations_.end()) {
      all = all.index_select(0, found->second).index_select(1, found->second);
      counts = counts.index_select(0, found->second);
    }
    const Tensor blocks = all.view({groups, each, groups, each});
    std::vector<Tensor> own;
    for (int64_t g = 0; g < groups; ++g) own.push_back(blocks.select(0, g).select(1, g));
    const Tensor distances = at::stack(own).to(p.scalar_type()).repeat({batch_->rows, 1, 1});
    add(scope, p, distances, counts.view({groups, each}).repeat({batch_->rows, 1}));
  }

  // Key j is (keys - queries) + i - j before query i; in bidirectional attention, |i - j|. Windows
  // are tiles [B · n, H, W, 2W].
  void add_tokens(const std::string& scope, const Tensor& p) {
    const int64_t queries = p.size(2);
    const Tensor i = at::arange(queries, at::kLong) + (p.size(3) - queries);
    const Tensor distances = (i.unsqueeze(1) - at::arange(p.size(3), at::kLong)).abs();
    add(scope, p, distances.to(p.scalar_type()).unsqueeze(0), query_weights(scope, p));
  }

  Tensor query_weights(const std::string& scope, const Tensor& p) const {
    const auto found = batch_->real.find(scope.substr(0, scope.find(".level.")));
    const int64_t rows = p.size(0);
    const int64_t queries = p.size(2);
    if (found == batch_->real.end()) return at::ones({rows, queries}, at::kDouble);
    const Tensor real = found->second.to(at::kDouble);  // [B, T]
    if (rows == real.size(0)) return real.narrow(1, real.size(1) - queries, queries);
    const int64_t tiles = rows / real.size(0);
    return real.narrow(1, 0, tiles * queries).reshape({rows, queries});
  }

  void add_share(const std::string& scope, const Tensor& from_states) {
    const Tensor window = window_norms_.at(scope);
    const Tensor share = from_states / (from_states + window).clamp_min(1e-12);  // [B, H, T]
    Sums& sums = sums_[scope];
    add_to(sums.state_share, share.to(at::kDouble).sum(c10::IntArrayRef{0, 2}));
    sums.shared += static_cast<double>(share.size(0) * share.size(2));
  }

  int64_t image_side_;
  const Batch* batch_ = nullptr;
  std::map<std::string, Sums> sums_;
  std::map<std::string, Tensor> permutations_;
  std::map<std::string, Tensor> window_norms_;
};

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

void draw_heads(Page& page, const AttentionReach& reach, const std::string& group,
                const std::string& unit) {
  HeatMap map;
  map.title = fmt::format("Attention distance of every head of {}, {}", reach.name, group);
  map.x_label = "head";
  map.y_label = "level";
  map.legend = unit;
  map.low = 0;
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

}  // namespace

AttentionReach attention_reach(Network& network, Batches& batches, int64_t image_side) {
  AttentionReach reach;
  reach.pixels = image_side > 0;
  ReachObserver observer(image_side);
  Reader reader(network);
  Batch batch;
  Progress progress("attention", 0);
  while (batches.next(batch)) {
    observer.begin(batch);
    reader.forward(batch, Scope(&observer));
    reach.items += batch.rows;
    progress.update(reach.items);
  }
  progress.finish();
  require(reach.items > 0, "attention distance: expected data, got none");
  for (const LevelGroup& group : level_groups(network)) {
    for (size_t i = 0; i < group.scopes.size(); ++i) {
      const auto found = observer.sums().find(group.scopes[i]);
      if (found == observer.sums().end() || found->second.queries == 0) continue;
      const Sums& s = found->second;
      LevelReach level;
      level.group = group.name;
      level.label = group.labels[i];
      level.distance = s.distance / s.queries;
      level.entropy = s.entropy / s.queries;
      if (s.shared > 0) level.state_share = s.state_share / s.shared;
      if (s.read > 0) level.state_entropy = s.state_entropy / s.read;
      reach.levels.push_back(level);
    }
  }
  require(!reach.levels.empty(), "attention distance: no level of the network has attention");
  return reach;
}

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
  for (const std::string& group : groups) {
    report.page.heading(group == "levels" ? "By level" : group);
    const auto draw = [&](Tensor LevelReach::*values, const std::string& label,
                          const std::string& caption) {
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
      if (any) report.page.figure(line_chart(chart), caption);
    };
    draw(&LevelReach::distance, "attention distance (" + unit + ")", "Attention distance.");
    draw(&LevelReach::entropy, "attention entropy (nats)",
         "Attention entropy: 0 for a single token, the logarithm of their number for uniform "
         "attention.");
    draw(&LevelReach::state_share, "share from recurrent states",
         "Share of a token's attention output that comes from the recurrent states, by norm.");
    for (const AttentionReach& reach : found) draw_heads(report.page, reach, group, unit);
  }
  for (const AttentionReach& reach : found) {
    nlohmann::json run = {{"name", reach.name}, {"unit", unit}, {"items", reach.items}};
    for (const LevelReach& l : reach.levels) {
      nlohmann::json level = {{"group", l.group},
                              {"level", l.label},
                              {"distance", json_of(l.distance)},
                              {"entropy", json_of(l.entropy)}};
      if (l.state_share.defined()) level["state_share"] = json_of(l.state_share);
      if (l.state_entropy.defined()) level["state_entropy"] = json_of(l.state_entropy);
      run["levels"].push_back(level);
      report.summary +=
          fmt::format("{} {} {}: distance {:.2f} {}, entropy {:.2f}\n", reach.name, l.group,
                      l.label, mean_of(l.distance), unit, mean_of(l.entropy));
    }
    report.numbers["runs"].push_back(run);
  }
  return report;
}

}  // namespace rondo::study
