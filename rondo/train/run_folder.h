// A run's folder on disk:
//
//   config.toml          the whole experiment, every key
//   changes.jsonl        keys that were changed on continuing: one line each, never rewound
//   metrics.jsonl        one line per logged step or evaluation
//   events.out.tfevents… the same for TensorBoard
//   checkpoints/         the newest few, and best.safetensors: the best model so far
//   lock                 held while a trainer is at work, as is the folder itself
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
  // Takes the folder for this process, new or to be continued; nothing in it is changed before
  // begin(). Error{busy} if another trainer holds it, Error{bad_input} if it belongs to another
  // experiment (config_continue.h: what may be changed).
  RunFolder(const std::string& path, const RunConfig& config);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(path_ + "/checkpoints"); }
  std::string best_path() const { return best_model_path(path_); }
  // train.steps as the run had it before this start; 0 for a new one.
  int64_t steps_before() const { return steps_before_; }

  // Now that it is known where the run goes on, the folder becomes that of this start: leftovers of
  // a killed trainer go, changed keys (those of the experiment and `more`) are noted and said,
  // config.toml is written, the log rewound.
  void begin(const RunPlace& place, const std::vector<ConfigChange>& more = {});
  // Appends to metrics.jsonl and the event file. After begin().
  void log(int64_t step, const std::map<std::string, double>& values);

  // Whether path() still leads to the folder that was opened. If not, it was renamed or removed,
  // and writing to the path would begin another.
  bool in_place() const;
  // After a rename: path() becomes the folder's new one. Error{io} if it is gone.
  void follow();

 private:
  // Descriptors that close themselves, and with that let go of the locks.
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
