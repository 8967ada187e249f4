// rondo study landscape: points are split among processes and kept in files, so that rerunning the
// command resumes.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/engine/session.h"
#include "cli/engine/study_kinds.h"
#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/report/run_curves.h"
#include "rondo/study/landscape.h"

namespace rondo::cli {
namespace {

constexpr int64_t kItems = 256;

study::LandscapeOptions plane_of(const StudyOptions& options) {
  study::LandscapeOptions plane;
  plane.points = options.points;
  plane.radius = options.radius;
  plane.seed = options.seed;
  return plane;
}

// The points file of the k-th run, next to the page.
std::string points_path(const StudyOptions& options, size_t k) {
  const std::string page = options.output.empty() ? "landscape.html" : options.output;
  return fmt::format("{}.points.{}", page, k + 1);
}

std::vector<study::Batch> all_batches(const study::Subject& subject,
                                      const study::SubjectOptions& how) {
  const auto reader = study::open_batches(subject, how);
  std::vector<study::Batch> batches;
  for (study::Batch batch; reader->next(batch);) batches.push_back(batch);
  return batches;
}

// Identifies what the points of a file were computed for.
std::string points_key(const study::Subject& subject, const StudyOptions& options) {
  return nlohmann::json({{"model", fingerprint(subject.config, *subject.network)},
                         {"points", options.points},
                         {"radius", options.radius},
                         {"seed", options.seed},
                         {"data", options.data},
                         {"tokenizer", options.tokenizer},
                         {"kernels", options.compute.kernels},
                         {"split", options.split},
                         {"items", options.items}})
      .dump();
}

// Computes this process's share of every run's points: every `parts`-th, unless already done.
void compute_part(const StudyOptions& options, int64_t part, int64_t parts) {
  study::SubjectOptions how = subject_options(options, kItems);
  how.rows = 64;
  for (size_t k = 0; k < options.runs.size(); ++k) {
    const study::Subject subject = study::load_subject(options.runs[k], how);
    const std::string key = points_key(subject, options);
    const auto done = study::PointFile(points_path(options, k), key).read();
    study::PointFile file(fmt::format("{}.{}", points_path(options, k), part), key);
    study::LossPlane plane(*subject.network, all_batches(subject, how), plane_of(options));
    for (int64_t i = part; i < options.points * options.points; i += parts) {
      const study::PlanePoint point = {i / options.points, i % options.points};
      if (done.count({point.row, point.column}) != 0) continue;
      file.add(point, plane.loss(point));
    }
  }
}

std::vector<std::string> part_command(const StudyOptions& options, int64_t part) {
  std::vector<std::string> words = {own_program(), "study", "landscape"};
  words.insert(words.end(), options.runs.begin(), options.runs.end());
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--data", options.data);
  add("--split", options.split);
  add("--tokenizer", options.tokenizer);
  add("--cache", options.cache);
  add("--items", std::to_string(options.items));
  add("--points", std::to_string(options.points));
  add("--radius", fmt::format("{}", options.radius));
  add("--seed", std::to_string(options.seed));
  add("--kernels", options.compute.kernels);
  add("--threads", "1");
  add("--output", options.output);
  add("--part", fmt::format("{}/{}", part, options.jobs));
  if (!options.load.verify) words.emplace_back("--no-verify");
  return words;
}

int64_t points_done(const StudyOptions& options, const std::vector<std::string>& keys) {
  int64_t count = 0;
  for (size_t k = 0; k < keys.size(); ++k) {
    count += static_cast<int64_t>(study::PointFile(points_path(options, k), keys[k]).read().size());
  }
  return count;
}

void run_processes(const StudyOptions& options, const std::vector<std::string>& keys) {
  std::vector<ChildProcess> children;
  const std::string log = points_path(options, 0) + ".log";
  for (int64_t part = 0; part < options.jobs; ++part) {
    ChildOptions child;
    child.arguments = part_command(options, part);
    child.log = log;
    children.emplace_back(child);
  }
  const int64_t all = options.points * options.points * static_cast<int64_t>(options.runs.size());
  Progress progress("landscape", all);
  bool running = true;
  while (running) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    running = false;
    for (ChildProcess& child : children) {
      const std::optional<int> code = child.poll();
      running = running || !code.has_value();
      if (!code.has_value() || *code == 0) continue;
      throw Error(ExitCode::failure, fmt::format("landscape: a process ended with code {}", *code),
                  fmt::format("see {}; rerun the command to resume", log));
    }
    progress.update(points_done(options, keys));
  }
  progress.finish();
}

}  // namespace

study::StudyReport study_landscape(const StudyOptions& options) {
  if (!options.part.empty()) {
    const std::vector<std::string> parts = split(options.part, '/');
    compute_part(options, std::stoll(parts.at(0)), std::stoll(parts.at(1)));
    return study::StudyReport("");
  }
  if (options.points % 2 == 0) {
    throw Error(
        ExitCode::usage,
        fmt::format("--points: expected an odd number, so that the trained weights are one of the "
                    "points, got {}",
                    options.points));
  }
  const std::vector<std::string> names = short_run_names(options.runs);
  study::SubjectOptions how = subject_options(options, kItems);
  std::vector<std::string> keys;
  for (const std::string& run : options.runs) {
    const study::Subject subject = study::load_subject(run, how);
    keys.push_back(points_key(subject, options));
    study::Batch batch;
    if (!study::open_batches(subject, how)->next(batch)) {
      throw Error(ExitCode::bad_input, fmt::format("{}: landscape: expected data, got none", run));
    }
  }
  const int64_t all = options.points * options.points * static_cast<int64_t>(keys.size());
  if (points_done(options, keys) < all) {
    options.jobs == 1 ? compute_part(options, 0, 1) : run_processes(options, keys);
  }
  std::vector<study::Landscape> found;
  for (size_t k = 0; k < keys.size(); ++k) {
    study::Landscape landscape;
    landscape.name = names[k];
    landscape.options = plane_of(options);
    landscape.items = how.items;
    const auto side = static_cast<size_t>(options.points);
    landscape.losses.assign(side, std::vector<double>(side, std::nan("")));
    for (const auto& [place, loss] : study::PointFile(points_path(options, k), keys[k]).read()) {
      landscape.losses[static_cast<size_t>(place.first)][static_cast<size_t>(place.second)] = loss;
    }
    found.push_back(landscape);
  }
  return study::landscape_report(found);
}

}  // namespace rondo::cli
