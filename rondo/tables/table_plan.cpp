// The runs of a table, and the files that describe their folder.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/tables/table_run.h"

namespace rondo {
namespace {

bool wanted(const std::vector<std::string>& chosen, const std::string& name) {
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

std::string run_folder(const TableRunOptions& options, const std::string& column,
                       const std::string& row, int64_t seed) {
  return fmt::format("{}/{}/{}/seed{}", options.output, column, row, seed);
}

// Whether a row was requested, or a requested row depends on it.
bool needed_by(const PaperTable& table, const std::vector<std::string>& chosen,
               const std::string& name) {
  if (wanted(chosen, name)) return true;
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const TableRow& row) {
    return (row.start == name || row.teacher == name) && needed_by(table, chosen, row.name);
  });
}

TableJob make_job(const PaperTable& table, const TableRow& row, const TableColumn& column,
                  const std::string& folder, int64_t seed, const TableRunOptions& options) {
  Layers layers = row_layers(table, row, column, options.mini);
  layers.data = parse_data_folders(options.data);
  layers.set = options.set;
  TableJob job;
  job.row = row.name;
  job.column = column.name;
  job.seed = seed;
  job.folder = folder;
  for (const auto& [key, other] :
       {std::pair{"train.start", row.start}, std::pair{"distill.teacher", row.teacher}}) {
    if (other.empty()) continue;
    job.needs.push_back(run_folder(options, table.runs_of(column).name, other, seed));
    layers.set.push_back(fmt::format("{}={}", key, job.needs.back()));
  }
  job.steps = resolve_experiment(layers).config.train.steps;
  return job;
}

}  // namespace

JobStatus job_status(const std::string& folder) {
  if (exists(folder + "/test.json")) return JobStatus::finished;
  if (exists(folder + "/diverged.json")) return JobStatus::diverged;
  return exists(folder + "/config.toml") ? JobStatus::unfinished : JobStatus::missing;
}

std::vector<TableJob> plan_table(const PaperTable& table, const TableRunOptions& options) {
  for (const std::string& name : options.rows) table.row(name);  // throws Error{usage} if unknown
  for (const std::string& name : options.columns) table.column(name);
  std::vector<TableJob> jobs;
  for (int64_t seed = 1; seed <= options.seeds; ++seed) {
    for (const TableColumn& column : table.columns) {
      if (!wanted(options.columns, column.name)) continue;
      const TableColumn& runs = table.runs_of(column);
      for (const TableRow& row : table.rows) {
        if (!row.has(column.name) || !needed_by(table, options.rows, row.name)) continue;
        const std::string folder = run_folder(options, runs.name, row.name, seed);
        if (std::any_of(jobs.begin(), jobs.end(),
                        [&](const auto& j) { return j.folder == folder; })) {
          continue;
        }
        jobs.push_back(make_job(table, row, column, folder, seed, options));
      }
    }
  }
  if (jobs.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: nothing to train", table.name),
                "choose a row that is trained for a chosen column");
  }
  return jobs;
}

TableFolder read_table_folder(const std::string& folder) {
  const std::string file = folder + "/table.json";
  if (!exists(file)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: contains no table (no table.json)", folder),
                "table folders are created by 'rondo table run'");
  }
  const auto json = nlohmann::json::parse(read_text_file(file, 1 << 20), nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: damaged", file));
  }
  TableFolder result;
  result.table = load_table(folder + "/table.toml");
  result.table.name = json["name"];
  result.mini = json.value("mini", false);
  result.jobs = json.value("jobs", int64_t{1});
  result.set = json.value("set", std::vector<std::string>());
  return result;
}

}  // namespace rondo
