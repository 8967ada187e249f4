// A checkpoint: everything a run needs to resume exactly as if it had never stopped, in one file
// that is either complete or absent. Weights, moments, averages and carried state are tensors;
// counters and the data position are text; a checksum covers all of it.
#pragma once

#include <optional>

#include "rondo/nn/tensor_file.h"

namespace rondo {

struct Checkpoint {
  NamedTensors tensors;  // "weight.…", "moment.…", "average.…", "carried.…"
  std::map<std::string, std::string> metadata;  // counters, data position, configuration

  // The tensors whose names start with `prefix` ("weight."), with the prefix removed.
  NamedTensors below(const std::string& prefix) const;
  void add(const std::string& prefix, const NamedTensors& more);
  std::string entry(const std::string& key) const;  // empty if absent
};

// The checkpoints of a run folder, "checkpoints/00001000.safetensors" and so on.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string folder) : folder_(std::move(folder)) {}

  // Writes the checkpoint of `step`, then removes all but the newest `keep` up to it. On failure
  // (disk full) throws Error{io} with path and size; earlier checkpoints are untouched.
  void save(int64_t step, const Checkpoint& checkpoint, int64_t keep) const;

  // The newest intact checkpoint, or nothing if there are none. Damaged ones are skipped with a
  // warning. If none is intact, or one cannot be read (its contents are then unknown), throws an
  // Error with the reason for each file: io if any could not be read, otherwise bad_input.
  struct Found {
    int64_t step = 0;
    Checkpoint checkpoint;
  };
  std::optional<Found> newest() const;

  // Steps that have a file, ascending. Error{io} if the folder exists but cannot be read.
  std::vector<int64_t> steps() const;
  std::string path(int64_t step) const;

 private:
  std::string folder_;
};

// Error{bad_input} if the file is damaged or not a checkpoint.
Checkpoint load_checkpoint(const std::string& path);
Checkpoint load_checkpoint(const std::string& path, Verify verify);

}  // namespace rondo
