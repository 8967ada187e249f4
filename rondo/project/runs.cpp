// Reading run folders.
#include "rondo/project/runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxRunRecordBytes = int64_t{1} << 20;
constexpr int kMaxRunDepth = 6;

// The metric that runs of a task are compared by, and whether larger is better.
struct TaskMetric {
  const char* name;
  bool larger;
};
TaskMetric metric_of(const std::string& task) {
  if (task == "image") return {"valid_accuracy", true};
  return {task == "translation" ? "valid_perplexity" : "valid_bits_per_byte", false};
}

void read_metrics(RunSummary& run) {
  const TaskMetric metric = metric_of(run.config.model.task());
  std::ifstream in(run.path + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto number = [&](const char* key) -> std::optional<double> {
      const auto found = json.find(key);
      if (found == json.end() || !found->is_number()) return std::nullopt;
      return found->get<double>();
    };
    const auto step = static_cast<int64_t>(number("step").value_or(0));
    run.step = std::max(run.step, step);
    run.seconds = number("seconds").value_or(run.seconds);
    run.loss = number("loss").value_or(run.loss);
    const std::optional<double> score = number(metric.name);
    if (!score) continue;
    run.last = RunScore{metric.name, *score, step};
    const bool better =
        !run.best || (metric.larger ? *score > run.best->value : *score < run.best->value);
    if (better) run.best = run.last;
  }
}

void read_record(RunSummary& run) {
  const std::string file = run.path + "/run.json";
  if (!exists(file)) return;
  const auto json = nlohmann::json::parse(read_text_file(file, kMaxRunRecordBytes), nullptr,
                                          /*exceptions=*/false);
  if (!json.is_object()) return;
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  run.recipe = text("recipe");
  run.commit = text("commit");
  run.cpu = text("cpu");
  run.started = text("time");
  const auto parameters = json.find("parameters");
  if (parameters != json.end() && parameters->is_number_integer()) {
    run.parameters = parameters->get<int64_t>();
  }
}

int64_t folder_bytes(const std::string& path) {
  int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += static_cast<int64_t>(entry->file_size(ignored));
  }
  return bytes;
}

void collect_runs(const fs::path& folder, int depth, std::vector<RunSummary>& runs) {
  if (is_run_folder(folder.string())) {
    try {
      runs.push_back(summarize_run(folder.string()));
    } catch (const Error& error) {
      log_warn("{}: {}", folder.string(), error.message());
    }
    return;
  }
  if (depth >= kMaxRunDepth) return;
  std::error_code error;
  std::vector<fs::path> inside;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    const bool hidden = entry.path().filename().string()[0] == '.';
    if (!hidden && entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      inside.push_back(entry.path());
    }
  }
  std::sort(inside.begin(), inside.end());
  for (const fs::path& path : inside) collect_runs(path, depth + 1, runs);
}

}  // namespace

// Reads the kernel's list of locks: taking the lock could interfere with a trainer that is
// starting.
bool is_running(const std::string& path) {
  std::vector<std::string> inodes;
  for (const std::string& file : {path, path + "/lock"}) {
    struct stat info {};
    if (stat(file.c_str(), &info) == 0) inodes.push_back(fmt::format(":{}", info.st_ino));
  }
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string advisory;
    std::string mode;
    std::string pid;
    std::string place;  // major:minor:inode
    words >> number >> kind >> advisory >> mode >> pid >> place;
    if (kind != "FLOCK" || mode != "WRITE") continue;
    for (const std::string& inode : inodes) {
      if (place.size() > inode.size() &&
          place.compare(place.size() - inode.size(), inode.size(), inode) == 0) {
        return true;
      }
    }
  }
  return false;
}

RunSummary summarize_run(const std::string& path) {
  RunSummary run;
  run.path = path;
  run.config = read_run_folder(path);
  read_record(run);
  read_metrics(run);
  for (const std::string& file : checkpoint_files(path)) {
    run.checkpoints.push_back(checkpoint_step(file));
    run.step = std::max(run.step, run.checkpoints.back());
  }
  run.has_best = exists(best_model_path(path));
  run.running = is_running(path);
  run.bytes = folder_bytes(path);
  return run;
}

std::vector<RunSummary> list_runs(const std::string& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(ExitCode::io, fmt::format("{}: no such folder", folder),
                "runs are created by 'rondo train'; 'rondo runs DIR' lists another folder");
  }
  std::vector<RunSummary> runs;
  collect_runs(folder, 0, runs);
  return runs;
}

}  // namespace rondo
