// The store of saved states.
#include "rondo/serve/state_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"

namespace rondo::serve {
namespace {

constexpr const char* kStateSuffix = ".state";

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

SavedState saved_state(State state, const std::string& model, const std::string& fingerprint) {
  SavedState saved;
  saved.tokens = state.has("position") ? state.get("position")[0].item<int64_t>() : 0;
  saved.bytes = state.bytes();
  saved.state = std::move(state);
  saved.model = model;
  saved.fingerprint = fingerprint;
  return saved;
}

http::ApiError foreign_state(const std::string& name, const SavedState& saved,
                             const std::string& model) {
  const bool loops = saved.model == model;
  return http::ApiError(
      409,
      fmt::format("state '{}' belongs to model '{}'{}", name, printable(saved.model),
                  loops ? " with another number of loops (or other weights)" : ""),
      "state");
}

StateStore::StateStore(const Limits& limits, std::string folder)
    : limits_(limits), folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!std::filesystem::is_directory(folder_, error)) {
    throw Error(ExitCode::io, fmt::format("{}: cannot create the folder for states", folder_),
                "choose another with --state-folder");
  }
  files_ = std::make_unique<Background>(SIZE_MAX);
}

std::string StateStore::path_of(const std::string& name) const {
  return folder_ + "/" + name + kStateSuffix;
}

void StateStore::forget(std::map<std::string, Entry>::iterator entry) {
  bytes_ -= entry->second.saved.bytes;
  if (files_ != nullptr) {
    files_->post(nullptr, [path = path_of(entry->first)] {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    });
  }
  entries_.erase(entry);
}

void StateStore::forget_old() {
  if (limits_.state_ttl_seconds <= 0) return;
  const double oldest = wall_seconds() - limits_.state_ttl_seconds;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto entry = at++;
    if (entry->second.used < oldest) forget(entry);
  }
}

void StateStore::make_room(int64_t bytes) {
  while (!entries_.empty() && (static_cast<int64_t>(entries_.size()) >= limits_.states ||
                               bytes_ + bytes > limits_.state_bytes)) {
    forget(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.turn < b.second.turn;
    }));
  }
}

std::vector<StateStore::Listed> StateStore::list() {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_old();
  const double now = wall_seconds();
  std::vector<Listed> all;
  for (const auto& [name, entry] : entries_) {
    all.push_back({name, entry.saved.model, entry.saved.tokens, entry.saved.bytes,
                   now - entry.created, now - entry.used});
  }
  return all;
}

std::optional<SavedState> StateStore::find(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_old();
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  found->second.used = wall_seconds();
  found->second.turn = ++turns_;
  return found->second.saved;
}

void StateStore::put(const std::string& name, SavedState saved) {
  if (saved.bytes > limits_.state_bytes) {
    throw http::ApiError(
        413, fmt::format("the state has {} bytes, more than the {} allowed for all states",
                         saved.bytes, limits_.state_bytes));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto old = entries_.find(name); old != entries_.end()) {
    bytes_ -= old->second.saved.bytes;
    entries_.erase(old);
  }
  forget_old();
  make_room(saved.bytes);
  if (files_ != nullptr) {
    files_->post(nullptr, [path = path_of(name), state = saved.state, owner = saved.fingerprint] {
      state.save(path, owner);
    });
  }
  bytes_ += saved.bytes;
  const double now = wall_seconds();
  entries_[name] = {std::move(saved), now, now, ++turns_};
}

bool StateStore::remove(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return false;
  forget(found);
  return true;
}

int64_t StateStore::count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

int64_t StateStore::bytes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

void StateStore::restore(const Load& load) {
  if (folder_.empty()) return;
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    if (file.path().extension() == kStateSuffix)
      files.emplace_back(file.last_write_time(), file.path());
  }
  std::sort(files.begin(), files.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [written, path] : files) {
    try {
      const std::string name = path.stem();
      http::check_state_name(name, "");
      std::optional<SavedState> saved = load(path);
      if (!saved) continue;
      if (saved->bytes > limits_.state_bytes) {
        log_warn("{}: skipped: {} exceed --state-bytes ({})", path.string(),
                 human_bytes(saved->bytes), human_bytes(limits_.state_bytes));
        continue;
      }
      make_room(saved->bytes);
      bytes_ += saved->bytes;
      const double now = wall_seconds();
      entries_[name] = {std::move(*saved), now, now, ++turns_};
    } catch (const std::exception& failure) {
      log_warn("{}: skipped: {}", path.string(), failure.what());
    }
  }
}

}  // namespace rondo::serve
