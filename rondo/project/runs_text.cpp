// Run folders as text and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rondo/base/text.h"
#include "rondo/config/trained_files.h"
#include "rondo/project/runs.h"

namespace rondo {
namespace {

std::string steps_text(const RunSummary& run) {
  return fmt::format("{} of {}", with_commas(run.step), with_commas(run.config.train.steps));
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

struct DataPlaces {
  std::string train;
  std::string valid;
  std::string test;
};

DataPlaces data_of(const RunConfig& config) {
  const std::string task = config.model.task();
  if (task == "image") return {config.images.train, config.images.valid, config.images.test};
  if (task == "translation") return {config.pairs.train, config.pairs.valid, config.pairs.test};
  return {config.data.train, config.data.valid, config.data.test};
}

std::string status_of(const RunSummary& run) {
  if (run.running) return "running";
  return run.step >= run.config.train.steps ? "finished" : "stopped";
}

nlohmann::json score_json(const std::optional<RunScore>& score) {
  if (!score) return nullptr;
  return {{"metric", score->metric}, {"value", score->value}, {"step", score->step}};
}

}  // namespace

std::string run_score_text(const std::optional<RunScore>& score) {
  if (!score) return "";
  std::string name = score->metric.substr(score->metric.find('_') + 1);
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} {:.{}f}", name, score->value, score->metric == "valid_accuracy" ? 2 : 4);
}

std::string use_command(const std::string& path, const std::string& task) {
  if (task == "lm") {
    return fmt::format("rondo generate {} --prompt \"Once\" -n 500 --temperature 0.8", path);
  }
  return task == "translation" ? fmt::format("rondo translate {} < input.txt", path)
                               : fmt::format("rondo classify {} photo.jpg", path);
}

std::string runs_table(const std::vector<RunSummary>& runs) {
  using Row = std::array<std::string, 7>;
  std::vector<Row> rows = {{"run", "task", "recipe", "step", "last score", "size", "status"}};
  for (const RunSummary& run : runs) {
    rows.push_back({run.path, run.config.model.task(), run.recipe, steps_text(run),
                    run_score_text(run.last), human_bytes(run.bytes), status_of(run)});
  }
  std::array<size_t, 7> width = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string run_text(const RunSummary& run) {
  std::string text = run.path + "\n\n";
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<14}{}\n", name, value);
  };
  const std::string task = run.config.model.task();
  row("task", fmt::format("{} ({})", task, run.config.model.kind()));
  row("recipe", run.recipe);
  if (run.parameters > 0) row("parameters", with_commas(run.parameters));
  const DataPlaces data = data_of(run.config);
  row("train data", data.train);
  row("valid data", data.valid.empty() ? "none" : data.valid);
  row("test data", data.test.empty() ? "none" : data.test);
  row("status", fmt::format("{}, step {}", status_of(run), steps_text(run)));
  if (run.seconds > 0) row("time", fmt::format("{} of training", duration(run.seconds)));
  if (run.step > 0) row("loss", fmt::format("{:.4f}", run.loss));
  if (run.last) {
    row("last score",
        fmt::format("{} at step {}", run_score_text(run.last), with_commas(run.last->step)));
    row("best score",
        fmt::format("{} at step {}", run_score_text(run.best), with_commas(run.best->step)));
  }
  std::vector<std::string> steps;
  for (const int64_t step : run.checkpoints) steps.push_back(with_commas(step));
  row("checkpoints", steps.empty() ? "none" : "step " + join(steps, "; "));
  row("best model", run.has_best ? best_model_path(run.path) : "none yet");
  row("size", human_bytes(run.bytes));
  row("started", run.started);
  row("commit", run.commit);
  row("CPU", run.cpu);
  text += "\n";
  if (run.step < run.config.train.steps && !run.running) {
    row("continue", fmt::format("rondo train {}", run.path));
  } else if (!run.running) {
    row("train longer",
        fmt::format("rondo train {} --set train.steps={}", run.path, run.config.train.steps * 2));
  }
  row("use", use_command(run.path, task));
  row("cost", fmt::format("rondo info {}/config.toml", run.path));
  return text;
}

nlohmann::json run_json(const RunSummary& run) {
  const DataPlaces data = data_of(run.config);
  return {{"run", run.path},
          {"task", run.config.model.task()},
          {"kind", run.config.model.kind()},
          {"recipe", run.recipe},
          {"parameters", run.parameters},
          {"data", {{"train", data.train}, {"valid", data.valid}, {"test", data.test}}},
          {"step", run.step},
          {"steps", run.config.train.steps},
          {"seconds", run.seconds},
          {"loss", run.loss},
          {"last_score", score_json(run.last)},
          {"best_score", score_json(run.best)},
          {"checkpoints", run.checkpoints},
          {"best_model", run.has_best},
          {"running", run.running},
          {"bytes", run.bytes},
          {"commit", run.commit}};
}

}  // namespace rondo
