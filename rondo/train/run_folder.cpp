// The folder of a run.
#include "rondo/train/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rondo/base/append_file.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"

namespace rondo {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string config_path(const std::string& run) { return run + "/config.toml"; }

}  // namespace

RunFolder::RunFolder(const std::string& path, const RunConfig& config)
    : path_(path), config_(config) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot create the run folder: {}", path_, error.message()),
                "choose another location with -o");
  }
  take_lock();
  if (exists(config_path(path_))) {
    const RunConfig before = read_run_folder(path_);
    changes_ = config_changes(path_, before, config);
    steps_before_ = before.train.steps;
  }
}

RunFolder::Lock::~Lock() {
  if (file >= 0) close(file);
  if (folder >= 0) close(folder);
}

// Locks the folder itself, which cannot be deleted and recreated under the same lock, and a file in
// it, for filesystems that cannot lock folders (NFS) and trainers of earlier versions.
void RunFolder::take_lock() {
  const auto opened = [](const std::string& path, int how) {
    const int descriptor = open(path.c_str(), how | O_CLOEXEC, 0644);
    if (descriptor >= 0) return descriptor;
    throw Error(ExitCode::io, fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  };
  const auto is_held = [](int descriptor) {
    return flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  };
  lock_.folder = opened(path_, O_RDONLY | O_DIRECTORY);
  bool held = is_held(lock_.folder);
  if (!held) {
    lock_.file = opened(path_ + "/lock", O_CREAT | O_RDWR);
    held = is_held(lock_.file);
  }
  if (held) {
    throw Error(ExitCode::busy, fmt::format("{}: another trainer is using this folder", path_),
                "wait for it, stop it, or choose another folder with -o");
  }
}

void RunFolder::begin(const RunPlace& place, const std::vector<ConfigChange>& more) {
  log_.emplace(path_, place);  // first: it throws if the log cannot be read
  remove_leftovers();
  std::vector<ConfigChange> changes = changes_;
  changes.insert(changes.end(), more.begin(), more.end());
  note_changes(place.step, changes);
  write_file(config_path(path_), dump_run_config(config_));
}

// Temporary files of a trainer killed while writing; the lock ensures that none is running.
void RunFolder::remove_leftovers() const {
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

// Called before config.toml is written: recording a change twice is better than losing it.
void RunFolder::note_changes(int64_t step, const std::vector<ConfigChange>& changes) const {
  const std::string file = path_ + "/changes.jsonl";
  const std::string now = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  std::string lines;
  for (const auto& [key, before, after] : changes) {
    log_info("{}: {} until step {}, {} from here on", key, before, step, after);
    const nlohmann::json line = {
        {"time", now}, {"step", step}, {"key", key}, {"before", before}, {"now", after}};
    lines += line.dump() + "\n";
  }
  if (lines.empty()) return;
  const int error = append_whole(file, lines);
  if (error == 0) return;
  throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", file, std::strerror(error)));
}

void RunFolder::log(int64_t step, const std::map<std::string, double>& values) {
  log_->write(path_, step, values);
}

bool RunFolder::in_place() const {
  struct stat opened = {};
  struct stat found = {};
  if (fstat(lock_.folder, &opened) != 0) return true;
  if (stat(path_.c_str(), &found) == 0) return same_file(opened, found);
  return errno != ENOENT && errno != ENOTDIR;  // otherwise the next write reports the error
}

void RunFolder::follow() {
  char place[PATH_MAX] = {};
  const std::string link = fmt::format("/proc/self/fd/{}", lock_.folder);
  const ssize_t length = readlink(link.c_str(), place, sizeof(place) - 1);
  struct stat opened = {};
  struct stat found = {};
  if (length <= 0 || fstat(lock_.folder, &opened) != 0 || stat(place, &found) != 0 ||
      !same_file(opened, found)) {
    throw Error(ExitCode::io, fmt::format("{}: the run folder was removed during the run", path_),
                "nothing more can be saved; start again, or restore the folder and resume");
  }
  path_ = place;
}

}  // namespace rondo
