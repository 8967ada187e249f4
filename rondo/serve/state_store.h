// Saved states of documents, by name: a bounded number in bounded memory, least recently used
// evicted first. With a folder they survive restarts: a separate thread writes the files in the
// order of the changes, and finishes before the store is destroyed. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "rondo/http/api_error.h"
#include "rondo/recurrence/state.h"
#include "rondo/serve/background.h"
#include "rondo/serve/limits.h"

namespace rondo::serve {

struct SavedState {
  State state;        // of one row, with logits and recent tokens
  std::string model;  // the served model's name
  std::string fingerprint;
  int64_t tokens = 0;
  int64_t bytes = 0;
};

class StateStore {
 public:
  // `folder`: "" = memory only.
  StateStore(const Limits& limits, std::string folder);

  struct Listed {
    std::string name;
    std::string model;
    int64_t tokens = 0;
    int64_t bytes = 0;
    double age_seconds = 0;   // since it was saved
    double idle_seconds = 0;  // since its last use
  };
  std::vector<Listed> list();
  std::optional<SavedState> find(const std::string& name);  // counts as use
  // Replaces a state of the same name. ApiError{413} if it exceeds the memory for all states.
  void put(const std::string& name, SavedState state);
  bool remove(const std::string& name);

  int64_t count();
  int64_t bytes();

  // Loads the folder's states; `load` returns the state of a file, or nothing if its model is not
  // served. Files for which it throws are skipped with a warning.
  using Load = std::function<std::optional<SavedState>(const std::string& path)>;
  void restore(const Load& load);

 private:
  struct Entry {
    SavedState saved;
    double created = 0;  // seconds of the system clock
    double used = 0;
    uint64_t turn = 0;  // larger: used more recently
  };
  std::string path_of(const std::string& name) const;
  void make_room(int64_t bytes);
  void forget(std::map<std::string, Entry>::iterator entry);
  void forget_old();

  const Limits& limits_;
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  int64_t bytes_ = 0;
  uint64_t turns_ = 0;
  std::unique_ptr<Background> files_;  // null: no folder
};

// Wraps `state` of `model` for the store.
SavedState saved_state(State state, const std::string& model, const std::string& fingerprint);
// ApiError{409}: state `name` does not fit `model`.
http::ApiError foreign_state(const std::string& name, const SavedState& saved,
                             const std::string& model);

}  // namespace rondo::serve
