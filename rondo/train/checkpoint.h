// A checkpoint: everything a run needs to go on exactly as if it had never stopped, in one file
// that is whole or absent. Weights, moments, averages and carried state are tensors; counters and
// the place in the data are text; a checksum covers all of it.
#pragma once

#include <optional>

#include "rondo/nn/tensor_file.h"

namespace rondo {

struct Checkpoint {
  NamedTensors tensors;  // "weight.…", "moment.…", "average.…", "carried.…"
  std::map<std::string, std::string> metadata;  // counters, data position, configuration

  // The tensors below `prefix` ("weight."), without it.
  NamedTensors below(const std::string& prefix) const;
  void add(const std::string& prefix, const NamedTensors& more);
  std::string entry(const std::string& key) const;  // empty if there is none
};

// The checkpoints of a run folder, "checkpoints/00001000.safetensors" and so on.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string folder) : folder_(std::move(folder)) {}

  // Writes the checkpoint of `step` and then removes all but the newest `keep` up to it. Error{io}
  // with path and size if that fails (disk full); earlier checkpoints are untouched then.
  void save(int64_t step, const Checkpoint& checkpoint, int64_t keep) const;

  // The newest checkpoint that is whole, nothing if there are none. Damaged ones are named in a
  // warning and passed over. If none is whole, or one cannot be read (which says nothing of what is
  // in it), an Error with the reason for each file: io if any could not be read, else bad_input.
  struct Found {
    int64_t step = 0;
    Checkpoint checkpoint;
  };
  std::optional<Found> newest() const;

  // Steps there are files for, ascending. Error{io} if the folder is there but cannot be read.
  std::vector<int64_t> steps() const;
  std::string path(int64_t step) const;

 private:
  std::string folder_;
};

// Error{bad_input} if the file is damaged or no checkpoint.
Checkpoint load_checkpoint(const std::string& path);

}  // namespace rondo
