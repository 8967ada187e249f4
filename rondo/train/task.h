// What the training engine needs to know of a task: batches turned into losses, an evaluation, and
// everything besides the weights that must survive a restart.
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
  // What a file of the network alone must say besides its configuration.
  virtual std::map<std::string, std::string> metadata() const { return {}; }

  // The loss of the next batch, with a graph when gradients are wanted. Moves on in the data.
  virtual LossSum next_loss() = 0;
  // Undoes what the last next_loss() carried over (its state, not its place in the data), after a
  // loss that was not finite.
  virtual void forget_last() = 0;

  // Tokens or images of one batch, for the speed shown.
  virtual double units_per_batch() const = 0;
  virtual const char* unit() const = 0;

  // Writes into the run's folder what its model needs besides weights and configuration.
  virtual void keep_files(const std::string& /*run*/) const {}

  // Measures the network on validation data; empty when there is none. `selection` is the number
  // that picks the best model, lower is better. `stop` (may be empty) is asked between batches;
  // once it says yes, the evaluation ends there and what it returns means nothing. In a group of
  // processes each measures a part, asks `stop` equally often, and returns the numbers of all.
  struct Evaluation {
    Metrics metrics;
    double selection = 0;
  };
  virtual std::optional<Evaluation> evaluate(const StopCheck& stop) = 0;

  // Further measurements of this step's network, every `probe_every` steps.
  virtual Metrics probe() { return {}; }

  // Over what is learned from: equal for the same training data wherever they lie.
  virtual std::string data_checksum() const = 0;

  // Place in the data, of all processes of a group, and tensors carried between batches, of which
  // the first dimension is the rows of this process.
  virtual std::string position() const = 0;
  virtual NamedTensors carried() const = 0;
  // With `other_rows` (another number of processes) the position may be of other rows.
  virtual void restore(const std::string& position, const NamedTensors& carried,
                       bool other_rows) = 0;
};

// Which part of the data is this process's; all of it without a group.
inline Shard shard_of(const ProcessGroup* group) {
  return group == nullptr ? Shard{} : group->shard();
}
// Adds up over the processes of a group, if there is one.
inline void sum_over(ProcessGroup* group, std::vector<double>& values) {
  if (group != nullptr) group->all_reduce(values.data(), static_cast<int64_t>(values.size()));
}

}  // namespace rondo
