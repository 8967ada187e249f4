// Copying the small files of a table's runs.
#include "rondo/tables/table_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/tables/table_results.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxRecordBytes = int64_t{64} << 20;

void copy_if_there(const std::string& from, const std::string& to, const char* name) {
  if (!exists(from + "/" + name)) return;
  write_file(fmt::format("{}/{}", to, name),
             read_text_file(fmt::format("{}/{}", from, name), kMaxRecordBytes));
}

// Evaluations, and probes of the state (state_use).
bool is_kept(const std::string& line) {
  return line.find("\"valid_") != std::string::npos ||
         line.find("\"state_use") != std::string::npos;
}

// Keeps the lines needed for curves, and the last one with the training time.
void copy_metrics(const std::string& from, const std::string& to) {
  std::ifstream file(from + "/metrics.jsonl");
  if (!file) return;
  std::string kept;
  std::string timed;  // the last line with the training time, if it is not kept anyway
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"seconds\"") != std::string::npos) timed = is_kept(line) ? "" : line + "\n";
    if (is_kept(line)) kept += line + "\n";
  }
  kept += timed;
  write_file(to + "/metrics.jsonl", kept);
}

void refuse_another_table(const TableFolder& table, const std::string& output) {
  if (!exists(output + "/table.json")) return;
  const TableFolder there = read_table_folder(output);
  if (there.table.name == table.table.name && there.mini == table.mini && there.set == table.set) {
    return;
  }
  throw Error(ExitCode::bad_input,
              fmt::format("{}: contains the record of another table: {}{}", output,
                          there.table.name, there.set.empty() ? "" : " with other settings"),
              "choose another folder with -o");
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw Error(ExitCode::io, fmt::format("{}: cannot create the folder: {}", path, error.message()));
}

// COLUMN/ROW/seedN of the finished and diverged runs.
std::vector<std::string> finished_runs(const PaperTable& table, const TableColumn& column,
                                       const std::string& folder) {
  std::vector<std::string> runs;
  for (const TableRow& row : table.rows) {
    const std::string place = fmt::format("{}/{}", column.name, row.name);
    for (const int64_t seed : seeds_in(fmt::format("{}/{}", folder, place))) {
      const std::string run = fmt::format("{}/seed{}", place, seed);
      const JobStatus status = job_status(fmt::format("{}/{}", folder, run));
      if (status == JobStatus::finished || status == JobStatus::diverged) runs.push_back(run);
    }
  }
  return runs;
}

void record_run(const std::string& from, const std::string& to, bool with_items) {
  make_folder(to);
  for (const char* name : {"config.toml", "run.json", "diverged.json"}) {
    copy_if_there(from, to, name);
  }
  copy_metrics(from, to);
  if (with_items) copy_if_there(from, to, "test.items");
  copy_if_there(from, to, "test.json");  // last: it marks a run as finished
}

}  // namespace

int64_t record_table(const std::string& folder, const std::string& output) {
  const TableFolder table = read_table_folder(folder);
  refuse_another_table(table, output);
  make_folder(output);
  int64_t runs = 0;
  for (const TableColumn& column : table.table.columns) {
    if (table.table.runs_of(column).name != column.name) continue;  // shares another column's runs
    const std::vector<std::string> done = finished_runs(table.table, column, folder);
    const bool one_seed = std::any_of(done.begin(), done.end(), [&](const std::string& run) {
      const auto row = run.substr(0, run.rfind('/') + 1);
      return std::count_if(done.begin(), done.end(),
                           [&](const std::string& other) { return other.rfind(row, 0) == 0; }) == 1;
    });
    for (const std::string& run : done) {
      record_run(fmt::format("{}/{}", folder, run), fmt::format("{}/{}", output, run), one_seed);
    }
    runs += static_cast<int64_t>(done.size());
  }
  copy_if_there(folder, output, "table.toml");
  copy_if_there(folder, output, "table.json");
  return runs;
}

}  // namespace rondo
