// Evaluating the loss on a plane of weights.
#include "rondo/study/landscape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "rondo/base/append_file.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/require.h"

namespace rondo::study {
namespace {

double batch_loss(Network& network, const Batch& batch, int64_t& count) {
  State state;
  const Tensor logits = network.forward(batch.inputs, state, Scope()).at("logits");
  const LossSum sum = sum_cross_entropy(logits, batch.labels);
  count += sum.count;
  return sum.sum.item<double>();
}

// From the lowest loss to the 90th percentile: far from the minimum the loss rises so steeply that
// the minimum would be invisible.
std::pair<double, double> color_range(const std::vector<Landscape>& found) {
  std::vector<double> all;
  for (const Landscape& l : found) {
    for (const auto& row : l.losses) {
      for (const double v : row) {
        if (std::isfinite(v)) all.push_back(v);
      }
    }
  }
  if (all.empty()) return {0, 1};
  std::sort(all.begin(), all.end());
  return {all.front(), all[(all.size() - 1) * 9 / 10]};
}

}  // namespace

NamedTensors filter_normalized_direction(const Network& network, uint64_t seed,
                                         const std::string& name) {
  const at::NoGradGuard no_grad;
  NamedTensors direction;
  for (const auto& item : network.named_parameters()) {
    const Tensor& w = item.value();
    if (w.dim() < 2) continue;
    const auto generator = nn::counter_generator(seed, "landscape." + name + "." + item.key(), 0);
    Tensor d = at::empty(w.sizes(), w.options()).normal_(0, 1, generator);
    const Tensor own = w.flatten(1).norm(2, 1);
    const Tensor scale = own / d.flatten(1).norm(2, 1).clamp_min(1e-10);
    Shape shape(static_cast<size_t>(w.dim()), 1);
    shape[0] = w.size(0);
    direction[item.key()] = d * scale.view(shape);
  }
  return direction;
}

LossPlane::LossPlane(Network& network, std::vector<Batch> batches, const LandscapeOptions& options)
    : network_(network), batches_(std::move(batches)), options_(options) {
  require(!batches_.empty(), "landscape: expected data, got none");
  require(options.points >= 2 && options.radius > 0,
          "landscape: expected 2 or more points and a radius above 0, got {} and {}",
          options.points, options.radius);
  first_ = filter_normalized_direction(network, options.seed, "first");
  second_ = filter_normalized_direction(network, options.seed, "second");
  const at::NoGradGuard no_grad;
  for (const auto& item : network.named_parameters()) {
    if (first_.count(item.key()) != 0) origin_[item.key()] = item.value().clone();
  }
}

LossPlane::~LossPlane() { move_to(0, 0); }

double LossPlane::coordinate(int64_t i) const {
  return options_.radius *
         (2 * static_cast<double>(i) / static_cast<double>(options_.points - 1) - 1);
}

void LossPlane::move_to(double x, double y) {
  const at::NoGradGuard no_grad;
  for (auto& item : network_.named_parameters()) {
    const auto origin = origin_.find(item.key());
    if (origin == origin_.end()) continue;
    item.value().copy_(origin->second);
    if (x != 0) item.value().add_(first_.at(item.key()), x);
    if (y != 0) item.value().add_(second_.at(item.key()), y);
  }
}

double LossPlane::loss(const PlanePoint& point) {
  const at::NoGradGuard no_grad;
  move_to(coordinate(point.column), coordinate(point.row));
  double sum = 0;
  int64_t count = 0;
  for (const Batch& batch : batches_) sum += batch_loss(network_, batch, count);
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

PointFile::PointFile(std::string path, std::string key)
    : path_(std::move(path)), key_(std::move(key)) {
  std::ifstream file(path_);
  std::string first;
  if (file && std::getline(file, first) && first == key_) return;
  write_file(path_, key_ + "\n");
}

std::map<std::pair<int64_t, int64_t>, double> PointFile::read() const {
  std::map<std::pair<int64_t, int64_t>, double> points;
  const std::filesystem::path whole(path_);
  std::filesystem::path folder = whole.parent_path();
  if (folder.empty()) folder = ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(whole.filename().string(), 0) != 0) continue;
    std::ifstream file(entry.path());
    std::string line;
    if (!std::getline(file, line) || line != key_) continue;
    while (std::getline(file, line)) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_array() || json.size() != 3 || !json[0].is_number_integer() ||
          !json[1].is_number_integer()) {
        continue;  // truncated
      }
      points[{json[0].get<int64_t>(), json[1].get<int64_t>()}] =
          json[2].is_number() ? json[2].get<double>() : HUGE_VAL;
    }
  }
  return points;
}

void PointFile::add(const PlanePoint& point, double loss) {
  nlohmann::json line = {point.row, point.column, nullptr};
  if (std::isfinite(loss)) line[2] = loss;
  const int error = append_whole(path_, line.dump() + "\n");
  if (error != 0) {
    throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", path_, std::strerror(error)));
  }
}

StudyReport landscape_report(const std::vector<Landscape>& found) {
  StudyReport report("The loss around trained weights");
  report.page.paragraph(fmt::format(
      "Mean cross-entropy over {} items along two random directions, filter-normalized (Li et al., "
      "2018): 1 moves every filter by its own norm. All plots share one color scale.",
      found.front().items));
  const auto [low, high] = color_range(found);
  for (const Landscape& l : found) {
    SurfaceMap map;
    map.title = "Loss around the weights of " + l.name;
    map.x_label = "first direction";
    map.y_label = "second direction";
    map.legend = "loss";
    const auto count = static_cast<double>(l.options.points - 1);
    for (int64_t i = 0; i < l.options.points; ++i) {
      map.x.push_back(l.options.radius * (2 * static_cast<double>(i) / count - 1));
    }
    map.y = map.x;
    map.values = l.losses;
    map.low = low;
    map.high = high;
    const auto middle = static_cast<size_t>(l.options.points / 2);
    const double center = l.losses[middle][middle];
    report.page.heading(l.name);
    report.page.figure(contour_map(map),
                       fmt::format("{}: {:.4f} at the trained weights.", l.name, center));
    report.page.figure(surface_plot(map), l.name + ", viewed from above at an angle.");
    nlohmann::json losses = nlohmann::json::array();
    for (const auto& row : l.losses) {
      nlohmann::json line = nlohmann::json::array();
      for (const double v : row) line.push_back(std::isfinite(v) ? nlohmann::json(v) : nullptr);
      losses.push_back(line);
    }
    report.numbers["runs"].push_back({{"name", l.name},
                                      {"radius", l.options.radius},
                                      {"seed", l.options.seed},
                                      {"items", l.items},
                                      {"losses", losses}});
    report.summary +=
        fmt::format("{}: loss {:.4f} at the trained weights, 90th percentile {:.4f} within {:g}\n",
                    l.name, center, color_range({l}).second, l.options.radius);
  }
  return report;
}

}  // namespace rondo::study
