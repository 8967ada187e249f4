// Metrics and events of a run.
#include "rondo/train/run_log.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rondo/base/append_file.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"

namespace rondo {
namespace {

std::string metrics_path(const std::string& folder) { return folder + "/metrics.jsonl"; }

// Training lines contain the learning rate, evaluation lines do not.
bool belongs_before(const nlohmann::json& line, const RunPlace& place) {
  if (!line.is_object()) return false;
  const auto step = line.value("step", int64_t{0});
  if (step != place.step || !place.evaluation_due) return step <= place.step;
  return line.contains("rate");
}

void rewind_metrics(const std::string& folder, const RunPlace& place) {
  const std::string file = metrics_path(folder);
  if (!exists(file)) return;
  std::ifstream in(file);
  std::string kept;
  bool same = true;
  for (std::string line; std::getline(in, line);) {
    const bool whole = !in.eof();  // ends with a newline
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool keeps = belongs_before(json, place);
    if (keeps) kept += line + "\n";
    same = same && whole && keeps;
  }
  if (!in.eof()) {
    throw Error(ExitCode::io, fmt::format("{}: cannot read: {}", file, std::strerror(errno)),
                "the run was left unchanged");
  }
  if (!same) write_file(file, kept);
}

std::string metrics_line(int64_t step, const std::map<std::string, double>& values) {
  nlohmann::json line = {{"step", step}};
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) {
      line[name] = value;
    } else {
      line[name] = nullptr;
    }
  }
  return line.dump() + "\n";
}

}  // namespace

RunLog::RunLog(const std::string& folder, const RunPlace& place) {
  rewind_metrics(folder, place);
  events_ = std::make_unique<EventWriter>(folder, place.step + 1);
}

void RunLog::write(const std::string& folder, int64_t step,
                   const std::map<std::string, double>& values) {
  const std::string file = metrics_path(folder);
  const int metrics = append_whole(file, metrics_line(step, values));
  const int events = events_->scalars(step, values);
  if ((metrics == 0 && events == 0) || !warnings_.due()) return;
  log_warn("{}: cannot write: {}; training continues without these lines (step {})",
           metrics != 0 ? file : events_->path(), std::strerror(metrics != 0 ? metrics : events),
           step);
}

}  // namespace rondo
