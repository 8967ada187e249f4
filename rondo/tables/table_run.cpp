// Starting, monitoring and completing the runs of a table.
#include "rondo/tables/table_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr int64_t kPollsPerUpdate = 10;
constexpr int kBusyRetries = 600;  // a trainer that was just killed holds its lock briefly
constexpr int64_t kTailBytes = 1 << 16;

std::atomic<int> stop_signal_seen{0};
extern "C" void on_table_signal(int signal) { stop_signal_seen = signal; }

// A signal that was ignored at startup (nohup, background jobs of a script) stays ignored.
void listen_for_stop() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) std::signal(signal, on_table_signal);
  }
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw Error(ExitCode::io, fmt::format("{}: cannot create the folder: {}", path, error.message()));
}

std::string last_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const int64_t size = file.tellg();
  const int64_t from = std::max<int64_t>(0, size - kTailBytes);
  file.seekg(from);
  std::string text(static_cast<size_t>(size - from), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

// The step that a run has reached, from its metrics.
int64_t step_of_run(const std::string& folder) {
  const std::string text = last_bytes(folder + "/metrics.jsonl");
  const size_t at = text.rfind("\"step\":");
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + 7, nullptr, 10);
}

// The error that ended a run, from the end of its log.
std::string last_error(const std::string& log) {
  const std::string text = last_bytes(log);
  const size_t at = text.rfind("rondo: ");
  if (at == std::string::npos) return "see " + log;
  return text.substr(at + 7, text.find('\n', at) - at - 7);
}

class TableRunner {
 public:
  TableRunner(const TableRunOptions& options, const PaperTable& table)
      : options_(options), table_(table), jobs_(plan_table(table, options)) {
    const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
    threads_ = std::max<int64_t>(1, cores / options.jobs);
  }

  int run() {
    make_folders(options_.output + "/logs");
    keep_request();
    listen_for_stop();
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const JobStatus status = job_status(jobs_[i].folder);
      if (status == JobStatus::missing || status == JobStatus::unfinished) waiting_.push_back(i);
    }
    require_weights();
    ProgressOptions shown;
    shown.initial = steps_done();
    Progress progress(table_.name, total_steps(), shown);
    int64_t polls = 0;
    while (start_ready() || !running_.empty()) {
      std::this_thread::sleep_for(kPollInterval);
      reap();
      if (stop_signal_seen != 0) return stop();
      if (++polls % kPollsPerUpdate == 0) progress.update(steps_done(), note());
    }
    progress.finish();
    return report_failures();
  }

 private:
  struct Running {
    size_t job;
    ChildProcess process;
    bool testing;
    int busy = 0;
  };

  // A row that depends on another needs its weights, which a record does not have.
  void require_weights() const {
    for (const size_t i : waiting_) {
      for (const std::string& need : jobs_[i].needs) {
        if (job_status(need) != JobStatus::finished || exists(need + "/best.safetensors")) continue;
        throw Error(ExitCode::bad_input,
                    fmt::format("{}: {} depends on this run, of which only the record is left",
                                need, label_of(jobs_[i])),
                    "to train it again, delete its test.json");
      }
    }
  }

  void keep_request() const {
    const std::string source = options_.table.find(".toml") != std::string::npos
                                   ? options_.table
                                   : find_shared("tables", options_.table);
    const nlohmann::json json = {{"name", table_.name},
                                 {"mini", options_.mini},
                                 {"jobs", options_.jobs},
                                 {"set", options_.set}};
    const std::string file = options_.output + "/table.json";
    if (exists(file)) refuse_another(read_table_folder(options_.output));
    write_file(options_.output + "/table.toml", read_text_file(source, 1 << 20));
    write_file(file, json.dump(2) + "\n");
  }

  void refuse_another(const TableFolder& before) const {
    const auto refuse = [&](const char* what, const std::string& was, const std::string& is) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: the folder contains another table: {} was {}, is {}",
                              options_.output, what, was, is),
                  "choose another folder with -o");
    };
    if (before.table.name != table_.name) refuse("the name", before.table.name, table_.name);
    if (before.mini != options_.mini) {
      refuse("--mini", before.mini ? "given" : "not given", options_.mini ? "given" : "not given");
    }
    if (before.set != options_.set) {
      refuse("--set", "[" + join(before.set, " ") + "]", "[" + join(options_.set, " ") + "]");
    }
    if (before.jobs != options_.jobs) {
      log_warn(
          "--jobs was {}, is {}: a different number of threads changes results in the last bits",
          before.jobs, options_.jobs);
    }
  }

  std::string log_of(const TableJob& job) const {
    return fmt::format("{}/logs/{}.{}.seed{}.log", options_.output, job.column, job.row, job.seed);
  }

  std::string label_of(const TableJob& job) const {
    return table_.columns.size() > 1 ? fmt::format("{}@{} seed {}", job.row, job.column, job.seed)
                                     : fmt::format("{} seed {}", job.row, job.seed);
  }

  ChildProcess start_training(const TableJob& job) const {
    make_folders(fs::path(job.folder).parent_path());
    const TableRow& row = table_.row(job.row);
    std::vector<std::string> command = {
        options_.program, "train", fmt::format("{}:{}@{}", options_.table, job.row, job.column),
        "-o", job.folder};
    if (options_.mini) command.emplace_back("--mini");
    for (const std::string& folder : options_.data) {
      command.insert(command.end(), {"--data", folder});
    }
    std::vector<std::string> set = options_.set;
    set.push_back(fmt::format("train.seed={}", job.seed));
    set.push_back(fmt::format("train.threads={}", threads_));
    size_t need = 0;
    if (!row.start.empty()) set.push_back("train.start=" + job.needs[need++]);
    if (!row.teacher.empty()) set.push_back("distill.teacher=" + job.needs[need]);
    for (const std::string& assignment : set) command.insert(command.end(), {"--set", assignment});
    if (!options_.cache.empty()) command.insert(command.end(), {"--cache", options_.cache});
    return ChildProcess({command, "", log_of(job), 0});
  }

  ChildProcess start_testing(const TableJob& job) const {
    const TableColumn& column = table_.column(job.column);
    std::vector<std::string> command = {options_.program, "eval",
                                        job.folder,       "--json",
                                        "--items",        job.folder + "/test.items",
                                        "--threads",      std::to_string(threads_)};
    if (column.test_tokens > 0) {
      command.insert(command.end(), {"--tokens", std::to_string(column.test_tokens)});
    }
    const bool text = column.metric != "accuracy";
    if (text && !options_.cache.empty()) command.insert(command.end(), {"--cache", options_.cache});
    return ChildProcess({command, job.folder + "/.test.json.tmp", log_of(job), 0});
  }

  // Starts the jobs that are ready; returns whether any are still waiting.
  bool start_ready() {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (static_cast<int64_t>(running_.size()) >= options_.jobs) break;
      const TableJob& job = jobs_[*it];
      const bool ready = std::all_of(job.needs.begin(), job.needs.end(), [](const auto& folder) {
        return job_status(folder) == JobStatus::finished;
      });
      if (ready) running_.push_back({*it, start_training(job), false});
      it = ready ? waiting_.erase(it) : std::next(it);
    }
    if (!running_.empty() || waiting_.empty()) return !waiting_.empty();
    for (const size_t i : waiting_) {
      failures_.push_back(label_of(jobs_[i]) + ": not started: a row it depends on failed");
    }
    waiting_.clear();
    return false;
  }

  void reap() {
    std::vector<Running> still;
    for (Running& r : running_) {
      const std::optional<int> code = r.process.poll();
      if (!code.has_value()) {
        still.push_back(std::move(r));
      } else if (*code == static_cast<int>(ExitCode::busy) && r.busy < kBusyRetries) {
        still.push_back({r.job, start_training(jobs_[r.job]), false, r.busy + 1});
      } else if (*code == 0 && !r.testing) {
        still.push_back({r.job, start_testing(jobs_[r.job]), true});
      } else {
        finish(jobs_[r.job], *code);
      }
    }
    running_ = std::move(still);
  }

  void finish(const TableJob& job, int code) {
    if (code == 0) {
      fs::rename(job.folder + "/.test.json.tmp", job.folder + "/test.json");
      log_info("{}: finished", label_of(job));
    } else if (code == static_cast<int>(ExitCode::diverged)) {
      const nlohmann::json json = {{"step", step_of_run(job.folder)},
                                   {"message", last_error(log_of(job))}};
      write_file(job.folder + "/diverged.json", json.dump(2) + "\n");
      log_warn("{}: diverged", label_of(job));
    } else if (stop_signal_seen == 0) {
      failures_.push_back(
          fmt::format("{}: exit code {}: {}", label_of(job), code, last_error(log_of(job))));
      log_warn("{}", failures_.back());
    }
  }

  int stop() {
    const int signal = stop_signal_seen;
    for (const Running& r : running_) r.process.send(SIGTERM);
    log_info("stopping: {} runs are saving; run the same command to resume", running_.size());
    while (!running_.empty()) {
      std::this_thread::sleep_for(kPollInterval);
      running_.erase(std::remove_if(running_.begin(), running_.end(),
                                    [](Running& r) { return r.process.poll().has_value(); }),
                     running_.end());
    }
    return 128 + signal;
  }

  int report_failures() const {
    if (failures_.empty()) return 0;
    std::string all;
    for (const std::string& failure : failures_) all += "\n  " + failure;
    throw Error(ExitCode::failure,
                fmt::format("{}: {} of {} runs failed:{}", options_.output, failures_.size(),
                            jobs_.size(), all),
                "run the same command to retry them");
  }

  int64_t total_steps() const {
    int64_t total = 0;
    for (const TableJob& job : jobs_) total += job.steps;
    return total;
  }

  int64_t steps_done() const {
    int64_t done = 0;
    for (const TableJob& job : jobs_) {
      const JobStatus status = job_status(job.folder);
      const bool over = status == JobStatus::finished || status == JobStatus::diverged;
      done += over ? job.steps : std::min(job.steps, step_of_run(job.folder));
    }
    return done;
  }

  std::string note() const {
    const size_t open = waiting_.size() + running_.size();
    std::vector<std::string> names;
    for (const Running& r : running_) {
      names.push_back(label_of(jobs_[r.job]) + (r.testing ? " (test)" : ""));
    }
    return fmt::format("{} of {} runs; {}", jobs_.size() - open, jobs_.size(), join(names, ", "));
  }

  TableRunOptions options_;
  const PaperTable& table_;
  std::vector<TableJob> jobs_;
  int64_t threads_ = 1;
  std::vector<size_t> waiting_;  // indices into jobs_, in order
  std::vector<Running> running_;
  std::vector<std::string> failures_;
};

}  // namespace

int run_table(const TableRunOptions& options) {
  const PaperTable table = load_table(options.table);
  return TableRunner(options, table).run();
}

}  // namespace rondo
