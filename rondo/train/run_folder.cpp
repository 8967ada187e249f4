// The folder of a run.
#include "rondo/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"

namespace rondo {
namespace {

// What may differ between the first start of a run and its continuation.
RunConfig comparable(RunConfig config) {
  const TrainConfig defaults;
  config.train.steps = defaults.steps;
  config.train.threads = defaults.threads;
  config.train.log_every = defaults.log_every;
  config.train.eval_every = defaults.eval_every;
  config.train.eval_tokens = defaults.eval_tokens;
  config.train.save_every = defaults.save_every;
  config.train.keep = defaults.keep;
  config.train.patience = defaults.patience;
  config.train.probe_every = defaults.probe_every;
  // More steps are a longer run of the same experiment; under linear and cosine schedules the rates
  // of the steps to come change with them.
  return config;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream x(a);
  std::istringstream y(b);
  std::string line_a;
  std::string line_b;
  while (std::getline(x, line_a) && std::getline(y, line_b)) {
    if (line_a != line_b) return fmt::format("expected {}, got {}", line_a, line_b);
  }
  return "another number of keys";
}

}  // namespace

RunFolder::RunFolder(const std::string& path, const RunConfig& config) : path_(path) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot make the run folder: {}", path_, error.message()),
                "choose another place with -o");
  }
  take_lock();
  remove_leftovers();
  settle_config(config);
  events_ = std::make_unique<EventWriter>(path_);
}

RunFolder::Lock::~Lock() {
  if (descriptor >= 0) close(descriptor);
}

void RunFolder::take_lock() {
  const std::string lock = path_ + "/lock";
  lock_.descriptor = open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_.descriptor < 0) {
    throw Error(ExitCode::io, fmt::format("{}: cannot open: {}", lock, std::strerror(errno)));
  }
  if (flock(lock_.descriptor, LOCK_EX | LOCK_NB) != 0) {
    throw Error(ExitCode::busy, fmt::format("{}: another trainer is at work in this folder", path_),
                "wait for it, stop it, or choose another folder with -o");
  }
}

// Temporaries of a trainer that was killed while it wrote; the lock says that none is at work.
void RunFolder::remove_leftovers() {
  for (const std::string& folder : {path_, path_ + "/checkpoints"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.front() == '.' && entry.path().extension() == ".tmp") {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
  }
}

void RunFolder::settle_config(const RunConfig& config) {
  const std::string file = path_ + "/config.toml";
  if (exists(file)) {
    const std::string before = dump_run_config(comparable(read_run_folder(path_)));
    const std::string now = dump_run_config(comparable(config));
    if (before != now) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: the folder holds another experiment: {}", path_,
                              first_difference(before, now)),
                  "choose another folder with -o, or remove this one");
    }
  }
  write_file(file, dump_run_config(config));
}

void RunFolder::rewind_metrics(int64_t step) {
  const std::string file = path_ + "/metrics.jsonl";
  if (!exists(file)) return;
  std::ifstream in(file);
  std::string kept;
  std::string line;
  while (std::getline(in, line)) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.value("step", int64_t{0}) <= step) kept += line + "\n";
  }
  write_file(file, kept);
}

void RunFolder::log(int64_t step, const std::map<std::string, double>& values) {
  nlohmann::json line = {{"step", step}};
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) {
      line[name] = value;
    } else {
      line[name] = nullptr;
    }
  }
  std::ofstream out(path_ + "/metrics.jsonl", std::ios::app);
  out << line.dump() << '\n';
  events_->scalars(step, values);
}

}  // namespace rondo
