// A run's folder on disk:
//
//   config.toml          the whole experiment, with every key
//   changes.jsonl        keys changed on resuming: one line each, never rewound
//   metrics.jsonl        one line per logged step or evaluation
//   events.out.tfevents… the same data for TensorBoard
//   checkpoints/         the newest few, and best.safetensors: the best model so far
//   lock                 locked while a trainer is running, as is the folder itself
#pragma once

#include <memory>
#include <optional>

#include "rondo/config/train_config_continue.h"
#include "rondo/config/trained_files.h"
#include "rondo/train/checkpoint.h"
#include "rondo/train/run_log.h"

namespace rondo {

class RunFolder {
 public:
  // Locks the folder, new or existing, for this process; nothing in it is changed before begin().
  // Error{busy} if another trainer holds it, Error{bad_input} if it belongs to another experiment
  // (config_continue.h: what may be changed).
  RunFolder(const std::string& path, const RunConfig& config);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(path_ + "/checkpoints"); }
  std::string best_path() const { return best_model_path(path_); }
  // train.steps of the run before this start; 0 for a new run.
  int64_t steps_before() const { return steps_before_; }

  // Prepares the folder once the starting point is known: removes leftovers of a killed trainer,
  // records and logs changed keys (those of the experiment and `more`), writes config.toml and
  // rewinds the log.
  void begin(const RunPlace& place, const std::vector<ConfigChange>& more = {});
  // Appends to metrics.jsonl and the event file. Call after begin().
  void log(int64_t step, const std::map<std::string, double>& values);

  // Whether path() still leads to the folder that was opened. If not, it was renamed or removed,
  // and writing to the path would create another.
  bool in_place() const;
  // After a rename: updates path(). Error{io} if the folder no longer exists.
  void follow();

 private:
  // Descriptors; closing them releases the locks.
  struct Lock {
    ~Lock();
    int folder = -1;
    int file = -1;
  };
  void take_lock();
  void remove_leftovers() const;
  void note_changes(int64_t step, const std::vector<ConfigChange>& changes) const;

  std::string path_;
  RunConfig config_;
  std::vector<ConfigChange> changes_;
  int64_t steps_before_ = 0;
  Lock lock_;
  std::optional<RunLog> log_;
};

}  // namespace rondo
