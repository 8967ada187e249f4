// A run's folder on disk:
//
//   config.toml          the whole experiment, every key
//   metrics.jsonl        one line per logged step or evaluation
//   events.out.tfevents… the same for TensorBoard
//   checkpoints/         the newest few, and best.safetensors: the best model so far
//   lock                 held while a trainer is at work
#pragma once

#include <memory>

#include "rondo/train/checkpoint.h"
#include "rondo/train/config_trained.h"
#include "rondo/train/tensorboard.h"

namespace rondo {

class RunFolder {
 public:
  // Creates the folder or continues one. Error{busy} if another trainer holds it, Error{bad_input}
  // if it belongs to another experiment (everything but steps, threads and intervals must agree).
  RunFolder(const std::string& path, const RunConfig& config);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(path_ + "/checkpoints"); }
  std::string best_path() const { return best_model_path(path_); }

  // Drops lines of steps after `step`, which a killed run wrote but will write again.
  void rewind_metrics(int64_t step);
  // Appends to metrics.jsonl and the event file.
  void log(int64_t step, const std::map<std::string, double>& values);

 private:
  // A descriptor that closes itself, and with that lets go of the lock.
  struct Lock {
    ~Lock();
    int descriptor = -1;
  };
  void take_lock();
  void remove_leftovers();
  void settle_config(const RunConfig& config);

  std::string path_;
  Lock lock_;
  std::unique_ptr<EventWriter> events_;
};

}  // namespace rondo
