// Time and memory estimate of a table from a few steps per row.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/tables/table_run.h"

namespace rondo {
namespace {

constexpr auto kForecastPoll = std::chrono::milliseconds(50);

struct Forecast {
  double seconds_per_step = 0;
  int64_t peak_bytes = 0;
};

// Runs `rondo train … --dry-run --json` for one job, with output in `scratch`.
Forecast measure(const TableJob& job, const TableRunOptions& options, int64_t threads,
                 const std::string& scratch) {
  std::vector<std::string> command = {options.program, "train",
                                      fmt::format("{}:{}@{}", options.table, job.row, job.column),
                                      "--dry-run", "--json"};
  if (options.mini) command.emplace_back("--mini");
  for (const std::string& folder : options.data) command.insert(command.end(), {"--data", folder});
  for (const std::string& a : options.set) command.insert(command.end(), {"--set", a});
  command.insert(command.end(), {"--set", fmt::format("train.threads={}", threads)});
  if (!options.cache.empty()) command.insert(command.end(), {"--cache", options.cache});
  ChildProcess child({command, scratch + "/out", scratch + "/log", 0});
  std::optional<int> code;
  while (!(code = child.poll()).has_value()) std::this_thread::sleep_for(kForecastPoll);
  const auto json =
      nlohmann::json::parse(read_text_file(scratch + "/out", 1 << 20), nullptr, false);
  if (*code != 0 || !json.is_object()) {
    throw Error(ExitCode::failure, fmt::format("{}: exit code {}: {}", job.row, *code,
                                               read_text_file(scratch + "/log", 1 << 20)));
  }
  return {json.value("seconds_per_step", 0.0), json.value("peak_bytes", int64_t{0})};
}

}  // namespace

std::string table_forecast(const TableRunOptions& options) {
  TableRunOptions first = options;
  first.seeds = 1;
  const PaperTable table = load_table(options.table);
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t threads = std::max<int64_t>(1, cores / options.jobs);
  const std::string scratch = std::filesystem::temp_directory_path() / "rondo-forecast";
  const std::string own = fmt::format("{}-{}", scratch, getpid());
  std::filesystem::create_directories(own);
  std::string text = fmt::format("{:<32} {:>10} {:>10} {:>12} {:>10}\n", "row", "steps", "s/step",
                                 "minutes", "memory");
  double seconds = 0;
  int64_t most = 0;
  for (const TableJob& job : plan_table(table, first)) {
    if (!job.needs.empty()) {
      log_warn("{}: not measured: it depends on another row", job.row);
      continue;
    }
    const Forecast f = measure(job, options, threads, own);
    const double all = f.seconds_per_step * static_cast<double>(job.steps);
    text += fmt::format("{:<32} {:>10} {:>10.3f} {:>12.1f} {:>10}\n", job.row + "@" + job.column,
                        with_commas(job.steps), f.seconds_per_step, all / 60,
                        human_bytes(f.peak_bytes));
    seconds += all;
    most = std::max(most, f.peak_bytes);
  }
  std::filesystem::remove_all(own);
  const double whole =
      seconds * static_cast<double>(options.seeds) / static_cast<double>(options.jobs);
  return text + fmt::format(
                    "\ntotal for {} seeds, {} at a time: {:.1f} hours excluding tests, at most {} "
                    "of memory\n",
                    options.seeds, options.jobs, whole / 3600, human_bytes(most * options.jobs));
}

}  // namespace rondo
