// The training engine's interface to a task: losses of batches, an evaluation, and everything
// besides the weights that must survive a restart.
#pragma once

#include <functional>
#include <optional>

#include "rondo/model/network.h"
#include "rondo/train/process_group.h"

namespace rondo {

using Metrics = std::map<std::string, double>;
using StopCheck = std::function<bool()>;

class Task {
 public:
  virtual ~Task() = default;

  virtual Network& network() = 0;
  // Metadata that a model file needs besides its configuration.
  virtual std::map<std::string, std::string> metadata() const { return {}; }

  // The loss of the next batch, with a graph if gradients are enabled. Advances in the data.
  virtual LossSum next_loss() = 0;
  // Undoes what the last next_loss() carried over (its state, not the data position), after a
  // non-finite loss.
  virtual void forget_last() = 0;

  // Tokens or images per batch, to report throughput.
  virtual double units_per_batch() const = 0;
  virtual const char* unit() const = 0;

  // Writes to the run folder what its model needs besides weights and configuration.
  virtual void keep_files(const std::string& /*run*/) const {}

  // Evaluates the network on validation data; empty if there is none. `selection` is the metric
  // that selects the best model, lower is better. `stop` (may be empty) is called between batches;
  // once it returns true, the evaluation ends and its result is meaningless. In a group, each
  // process evaluates a part, calls `stop` equally often, and returns the metrics of all.
  struct Evaluation {
    Metrics metrics;
    double selection = 0;
  };
  virtual std::optional<Evaluation> evaluate(const StopCheck& stop) = 0;

  // Further metrics of this step's network, every `probe_every` steps.
  virtual Metrics probe() { return {}; }

  // Of the training data: equal for the same data, wherever it is stored.
  virtual std::string data_checksum() const = 0;

  // The data position, of all processes of a group, and tensors carried between batches, whose
  // first dimension is the rows of this process.
  virtual std::string position() const = 0;
  virtual NamedTensors carried() const = 0;
  // With `other_rows` (the number of processes changed), the position may be of other rows.
  virtual void restore(const std::string& position, const NamedTensors& carried,
                       bool other_rows) = 0;
};

// This process's part of the data; all of it without a group.
inline Shard shard_of(const ProcessGroup* group) {
  return group == nullptr ? Shard{} : group->shard();
}
// Sums over the processes of a group, if there is one.
inline void sum_over(ProcessGroup* group, std::vector<double>& values) {
  if (group != nullptr) group->all_reduce(values.data(), static_cast<int64_t>(values.size()));
}

}  // namespace rondo
