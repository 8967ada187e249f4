// Signals relative to what they are added to, observed in forward passes.
#include "rondo/study/signal_sizes.h"

#include <fmt/format.h>

#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/recurrence/stack.h"
#include "rondo/report/charts.h"

namespace rondo::study {
namespace {

constexpr const char* kParts[] = {"query", "key", "value", "feed_forward"};

struct SignalSum {
  double ratio = 0, direction = 0, tokens = 0;
};

// Names end in "<scope>.mixing.query.signal.added", "<scope>.feed_forward.signal.joined", ….
class SignalObserver : public Observer {
 public:
  void begin(const Batch& batch) { batch_ = &batch; }
  bool wants(const std::string& name) override {
    return name.find(".signal.added") != std::string::npos ||
           name.find(".signal.joined") != std::string::npos;
  }
  void activation(const std::string& name, const Tensor& value) override {
    const size_t end = name.rfind(".signal.");
    const std::string place = name.substr(0, end);  // "<scope>.mixing.query"
    const bool added = name.compare(end, std::string::npos, ".signal.added") == 0;
    Tensor& other = waiting_[place];
    if (!other.defined()) {
      other = value;
      return;
    }
    add(place, added ? value : other, added ? other : value);
    waiting_.erase(place);
  }
  const std::map<std::string, SignalSum>& sums() const { return sums_; }

 private:
  void add(const std::string& place, const Tensor& signal, const Tensor& joined) {
    const Tensor g = signal.to(at::kDouble);  // [B, T, D]
    const Tensor u = joined.to(at::kDouble);
    const Tensor g_norm = g.norm(2, -1);
    const Tensor u_norm = u.norm(2, -1).clamp_min(1e-12);
    const Tensor cosine = (g * u).sum(-1) / (g_norm * u_norm).clamp_min(1e-12);
    Tensor counts = at::ones(g_norm.sizes(), at::kDouble);
    const auto real = batch_->real.find(place.substr(0, place.find(".level.")));
    if (real != batch_->real.end()) counts = real->second.to(at::kDouble);
    SignalSum& sum = sums_[place];
    sum.ratio += (g_norm / u_norm * counts).sum().item<double>();
    sum.direction += (cosine * counts).sum().item<double>();
    sum.tokens += counts.sum().item<double>();
  }

  const Batch* batch_ = nullptr;
  std::map<std::string, Tensor> waiting_;
  std::map<std::string, SignalSum> sums_;
};

Tensor cosines(const std::vector<Tensor>& matrices) {
  std::vector<Tensor> unit;
  for (const Tensor& m : matrices) {
    const Tensor flat = m.to(at::kDouble).flatten();
    unit.push_back(flat / flat.norm().clamp_min(1e-12));
  }
  const Tensor all = at::stack(unit);
  return at::matmul(all, all.t());
}

Tensor differences(const std::vector<Tensor>& matrices) {
  const auto count = static_cast<int64_t>(matrices.size());
  Tensor all = at::zeros({count, count}, at::kDouble);
  for (size_t i = 0; i < matrices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double apart = (matrices[i] - matrices[j]).norm().item<double>();
      const double size = (matrices[i].norm() * matrices[j].norm()).sqrt().item<double>();
      const auto r = static_cast<int64_t>(i);
      const auto c = static_cast<int64_t>(j);
      all[r][c] = apart / std::max(size, 1e-12);
      all[c][r] = all[r][c];
    }
  }
  return all;
}

// Weights by name, and a signal's map as a matrix [out, in]; undefined if absent.
class NamedWeights {
 public:
  explicit NamedWeights(const Network& network) : parameters_(network.named_parameters()) {}
  Tensor weight(const std::string& name) const {
    const Tensor* found = parameters_.find(name);
    return found == nullptr ? Tensor() : found->detach();
  }
  Tensor signal(const std::string& path) const {
    const Tensor full = weight(path + ".full");
    if (full.defined()) return full.t();
    const Tensor up = weight(path + ".up");
    return up.defined() ? at::matmul(up.t(), weight(path + ".down")) : Tensor();
  }

 private:
  torch::OrderedDict<std::string, Tensor> parameters_;
};

// W + G if the signal is added after the map, W (1 + G) if before it.
Tensor effective_weight(const Tensor& w, const Tensor& g, bool after) {
  return after ? w + g : w + at::matmul(w, g);
}

WeightSimilarity compare_weights(const NamedWeights& weights, const std::string& stack_name,
                                 const Stack& stack, const std::string& part,
                                 const RingConfig& ring) {
  WeightSimilarity found;
  found.part = part;
  std::vector<Tensor> effective;
  std::vector<Tensor> signals;
  for (int64_t i = 0; i < stack.plan().size(); ++i) {
    const Level& level = stack.plan().levels[static_cast<size_t>(i)];
    if (level.signal == kNone) continue;
    const Tensor g = weights.signal(fmt::format("{}.signal.{}.{}", stack_name, level.signal, part));
    const bool feed = part == "feed_forward";
    const Tensor w = weights.weight(
        feed ? fmt::format("{}.feed_forward.{}.up.weight", stack_name, level.feed_forward)
             : fmt::format("{}.mixing.{}.projections.{}.weight", stack_name, level.mixing, part));
    if (!g.defined() || !w.defined()) continue;
    const bool after = feed ? ring.feed_forward == "inter" : ring.attention == "after";
    found.levels.push_back(std::to_string(i + 1));
    signals.push_back(g);
    effective.push_back(effective_weight(w, g, after));
  }
  if (signals.empty()) return found;
  found.effective = cosines(effective);
  found.difference = differences(effective);
  found.signals = cosines(signals);
  return found;
}

std::string title_of(const std::string& part) {
  return part == "feed_forward" ? "feed-forward" : part;
}

void draw_levels(Page& page, const SignalSizes& found, const WeightSimilarity& w, bool signals) {
  HeatMap map;
  map.title = fmt::format("{}, {}: ", found.name, w.group);
  map.title += signals ? fmt::format("cosine between the levels' {} signals", title_of(w.part))
                       : fmt::format(
                             "difference between the levels' effective {} weights, "
                             "relative to their norm",
                             title_of(w.part));
  map.x_label = "level";
  map.y_label = "level";
  map.legend = signals ? "cosine" : "difference";
  map.rows = w.levels;
  map.columns = w.levels;
  map.values = grid_of(signals ? w.signals : w.difference);
  map.low = signals ? -1 : 0;
  if (signals) map.high = 1;
  map.diverging = signals;
  page.figure(heat_map(map), map.title + ".");
}

void draw_sizes(Page& page, const SignalSizes& found, double SignalSize::*value,
                const char* label) {
  std::vector<std::string> groups;
  for (const SignalSize& s : found.sizes) {
    if (groups.empty() || groups.back() != s.group) groups.push_back(s.group);
  }
  for (const std::string& group : groups) {
    LineChart chart;
    chart.title = fmt::format("{}, {}: {}", found.name, group, label);
    chart.x.label = "level";
    chart.x.whole = true;
    chart.y.label = label;
    chart.marks = true;
    for (const char* part : kParts) {
      Series series{title_of(part)};
      for (const SignalSize& s : found.sizes) {
        if (s.group != group || s.part != part) continue;
        series.points.emplace_back(std::stod(s.level), s.*value);
      }
      if (!series.points.empty()) chart.series.push_back(series);
    }
    page.figure(line_chart(chart), chart.title + ".");
  }
}

}  // namespace

SignalSizes signal_sizes(Network& network, Batches& batches, const RingConfig& ring) {
  SignalSizes found;
  SignalObserver observer;
  Reader reader(network);
  Batch batch;
  Progress progress("signals", 0);
  while (batches.next(batch)) {
    observer.begin(batch);
    reader.forward(batch, Scope(&observer));
    found.items += batch.rows;
    progress.update(found.items);
  }
  progress.finish();
  require(found.items > 0, "signals: expected data, got none");
  require(
      !observer.sums().empty(),
      "signals: no level of the network has signals: expected a network with the scheme 'ring'");
  const NamedWeights weights(network);
  const auto stacks = network.stacks();
  for (const LevelGroup& group : level_groups(network)) {
    for (size_t i = 0; i < group.scopes.size(); ++i) {
      for (const char* part : kParts) {
        const bool feed = std::string(part) == "feed_forward";
        const auto sum = observer.sums().find(group.scopes[i] + (feed ? "." : ".mixing.") + part);
        if (sum == observer.sums().end()) continue;
        const SignalSum& s = sum->second;
        found.sizes.push_back(
            {group.name, group.labels[i], part, s.ratio / s.tokens, s.direction / s.tokens});
      }
    }
    for (const char* part : kParts) {
      const std::string& stack = group.stacks.front();
      WeightSimilarity w = compare_weights(weights, stack, *stacks.at(stack), part, ring);
      w.group = group.name;
      if (!w.levels.empty()) found.weights.push_back(w);
    }
  }
  return found;
}

StudyReport signals_report(const std::vector<SignalSizes>& all) {
  StudyReport report("How levels modulate the block they share");
  report.page.paragraph(
      "A level's signal g(x) is added to the output of the shared weights. Its size is ‖g(x)‖ over "
      "the norm of that output, averaged over tokens; its direction is the mean cosine of the two: "
      "above 0 it amplifies, below 0 it counteracts, at 0 it is orthogonal.");
  for (const SignalSizes& found : all) {
    nlohmann::json run = {{"name", found.name}, {"items", found.items}};
    report.page.heading(found.name);
    draw_sizes(report.page, found, &SignalSize::ratio, "size of the signal");
    draw_sizes(report.page, found, &SignalSize::direction, "direction of the signal");
    for (const SignalSize& s : found.sizes) {
      run["sizes"].push_back({{"group", s.group},
                              {"level", s.level},
                              {"part", s.part},
                              {"ratio", s.ratio},
                              {"direction", s.direction}});
      report.summary += fmt::format("{} {} level {} {}: size {:.3f}, direction {:+.3f}\n",
                                    found.name, s.group, s.level, s.part, s.ratio, s.direction);
    }
    for (const WeightSimilarity& w : found.weights) {
      draw_levels(report.page, found, w, /*signals=*/false);
      draw_levels(report.page, found, w, /*signals=*/true);
      run["weights"].push_back({{"group", w.group},
                                {"part", w.part},
                                {"levels", w.levels},
                                {"effective", json_of(w.effective)},
                                {"difference", json_of(w.difference)},
                                {"signals", json_of(w.signals)}});
    }
    report.numbers["runs"].push_back(run);
  }
  return report;
}

}  // namespace rondo::study
