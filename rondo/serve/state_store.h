// Saved states of documents, by name: a bounded number in bounded memory, the least recently used
// leave first. With a folder they outlive the server: files are written by a thread of their own,
// in the order of the changes, all of them before the store ends. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>

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
  // `folder`: "" = memory alone.
  StateStore(const Limits& limits, std::string folder);

  struct Listed {
    std::string name;
    std::string model;
    int64_t tokens = 0;
    int64_t bytes = 0;
    double age_seconds = 0;   // since it was saved
    double idle_seconds = 0;  // since it was used
  };
  std::vector<Listed> list();
  std::optional<SavedState> find(const std::string& name);  // counts as use
  // Replaces one of the same name. ApiError{413} for a state larger than all room.
  void put(const std::string& name, SavedState state);
  bool remove(const std::string& name);

  int64_t count();
  int64_t bytes();

  // Reads the folder's states; `load` gives the state of a file, or nothing if it is of no model
  // that is served.
  using Load = std::function<std::optional<SavedState>(const std::string& path)>;
  void restore(const Load& load);

 private:
  struct Entry {
    SavedState saved;
    double created = 0;  // seconds of the system's clock
    double used = 0;
    uint64_t turn = 0;  // larger: used later
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

// `state` of `model` as it is kept.
SavedState saved_state(State state, const std::string& model, const std::string& fingerprint);

}  // namespace rondo::serve
