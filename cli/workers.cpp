// Starts and supervises the processes of a group on this machine.
#include "cli/workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/launcher.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

constexpr const char* kGroupFile = "RONDO_GROUP_FILE";  // as in rondo/train/group_place.h
constexpr double kGraceSeconds = 10;  // after the timeout, for processes that lost their group

// Signals received but not forwarded yet, one bit each.
std::atomic<uint64_t> received{0};
extern "C" void on_worker_signal(int signal) { received |= uint64_t{1} << signal; }

// Handles the signals to forward to the workers during its lifetime.
class PassedSignals {
 public:
  PassedSignals() {
    for (const int signal : kSignals) {
      struct sigaction action = {};
      action.sa_handler = on_worker_signal;
      struct sigaction before = {};
      sigaction(signal, nullptr, &before);
      if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
    }
    sigset_t save = {};
    sigemptyset(&save);
    sigaddset(&save, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &save, nullptr);
  }
  ~PassedSignals() {
    for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  }
  PassedSignals(const PassedSignals&) = delete;
  PassedSignals& operator=(const PassedSignals&) = delete;

  static void pass_to(const ChildProcess& worker) {
    const uint64_t now = received.exchange(0);
    for (const int signal : kSignals) {
      if ((now >> signal & 1U) != 0) worker.send(signal);
    }
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "rondo-group-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      throw Error(ExitCode::io, fmt::format("{}: cannot create the folder", path_), "set TMPDIR");
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  words.front() = own_program();
  return words;
}

// 129, 130 and 143 mean that a run was stopped by a signal and saved a checkpoint.
bool is_killed(int code) { return code > 128 && code != 129 && code != 130 && code != 143; }

// The first failure, preferring a process that knows the cause over one that lost its group.
int code_of_all(const std::vector<std::optional<int>>& codes) {
  int result = 0;
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    const int code = is_killed(*codes[rank]) ? static_cast<int>(ExitCode::group) : *codes[rank];
    if (is_killed(*codes[rank])) {
      log_error("rank {} was killed by signal {}", rank, *codes[rank] - 128);
    }
    if (code != 0 && (result == 0 || result == static_cast<int>(ExitCode::group))) result = code;
  }
  return result;
}

int watch(std::vector<ChildProcess>& workers, double timeout) {
  std::vector<std::optional<int>> codes(workers.size());
  std::optional<std::chrono::steady_clock::time_point> failed;
  for (size_t running = workers.size(); running > 0;) {
    PassedSignals::pass_to(workers.front());
    running = 0;
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      codes[rank] = workers[rank].poll();
      running += codes[rank].has_value() ? 0 : 1;
      if (codes[rank].value_or(0) != 0 && !failed) failed = std::chrono::steady_clock::now();
    }
    const auto now = std::chrono::steady_clock::now();
    if (failed && std::chrono::duration<double>(now - *failed).count() > timeout + kGraceSeconds) {
      for (const ChildProcess& worker : workers) worker.send(SIGKILL);
    }
    if (running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return code_of_all(codes);
}

}  // namespace

std::optional<LaunchedPlace> launched_place() {
  const auto value_of = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
  const Launcher* launcher = find_launcher(value_of);
  if (launcher == nullptr) return std::nullopt;
  return LaunchedPlace{launcher->name, *value_of(launcher->rank), *value_of(launcher->size)};
}

bool starts_workers(const TrainOptions& options) {
  if (options.workers < 2 || std::getenv(kGroupFile) != nullptr) return false;
  if (options.dry_run) {
    throw Error(ExitCode::usage, "train: --dry-run measures one process", "omit --workers");
  }
  if (const auto place = launched_place(); place.has_value() && place->size != "1") {
    throw Error(ExitCode::usage,
                fmt::format("train: --workers {} given, but {} started this process as rank {} of "
                            "{}: each of them would start {} more",
                            options.workers, place->launcher, printable(place->rank),
                            printable(place->size), options.workers),
                "omit --workers; for this machine alone, start 'rondo train' without the launcher");
  }
  return true;
}

int run_workers(const TrainOptions& options) {
  const TemporaryFolder folder;
  const PassedSignals signals;
  const std::vector<std::string> arguments = own_arguments();
  std::vector<ChildProcess> workers;
  for (int64_t rank = 0; rank < options.workers; ++rank) {
    ChildOptions child;
    child.arguments = arguments;
    child.environment = {fmt::format("{}={}/meeting", kGroupFile, folder.path()),
                         fmt::format("RANK={}", rank),
                         fmt::format("WORLD_SIZE={}", options.workers),
                         fmt::format("LOCAL_WORLD_SIZE={}", options.workers)};
    workers.emplace_back(child);
  }
  return watch(workers, options.group_timeout);
}

}  // namespace rondo::cli
