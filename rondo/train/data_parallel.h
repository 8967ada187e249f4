// Synchronous data parallelism: every process computes the gradients of its own rows; one sum over
// all of them at the end of the step makes the step that one process with all rows would take. The
// loss, the number of labels, and what a process wants (to stop, to save) travel in the same sum,
// so that all take every decision alike.
#pragma once

#include "rondo/nn/synchronized_norm.h"
#include "rondo/train/checkpoint.h"
#include "rondo/train/step.h"

namespace rondo {

// What one process asks for, or what any of a group does.
struct StepRequests {
  int stop_code = 0;   // exit code that goes with a signal; 0 = none
  bool save = false;   // a checkpoint now
  bool moved = false;  // the run folder was moved
};

class DataParallel {
 public:
  // `group` may be null: then there is nothing to add up. Both must outlive this.
  DataParallel(ProcessGroup* group, Network& network, const TrainConfig& config);

  bool is_alone() const { return group_ == nullptr; }
  bool is_first() const { return shard().is_first(); }
  Shard shard() const { return shard_of(group_); }

  // Sums gradients (left in the parameters), losses and requests over the processes, and averages
  // the network's buffers (running statistics). A parameter without a gradient in any process stays
  // without.
  StepLoss reduce(const StepLoss& mine, StepRequests& requests);
  // Seconds that sums over the processes have taken so far, waiting for the slowest included.
  double seconds() const { return seconds_; }
  // The memory of all gradients, one behind the other in the order of parameters, which they are
  // views of after reduce(). Undefined without a group.
  Tensor gradients() const { return is_alone() ? Tensor() : flat_.narrow(0, 0, gradient_count_); }
  // The requests alone, between batches of an evaluation.
  void agree(StepRequests& requests);

  // The newest checkpoint as rank 0 has found it.
  std::optional<CheckpointFolder::Found> share(std::optional<CheckpointFolder::Found> found);
  // Rank 0 gets the rows of all processes, the others nothing.
  NamedTensors gather_rows(const NamedTensors& mine);
  // Error{failure} naming a rank whose weights are not those of rank 0.
  void require_same_weights();
  // Until rank 0 has done what it does alone.
  void wait_for_first();

 private:
  // A tensor's place in flat_.
  struct Place {
    Tensor tensor;
    int64_t begin = 0;
  };
  void pack(const StepLoss& mine, const StepRequests& requests);
  void sum();
  StepLoss unpack(StepRequests& requests);

  ProcessGroup* group_;
  Network& network_;
  std::optional<nn::SynchronizedNorms> norms_;  // with train.sync_batch_norm
  bool narrow_;                                 // gradients travel as bf16
  std::vector<Place> parameters_;
  std::vector<Place> buffers_;
  int64_t gradient_count_ = 0;  // numbers of all gradients
  int64_t reports_ = 0;         // where the processes' reports begin
  Tensor flat_;                 // gradients, buffers, which gradients there are, reports
  std::vector<uint16_t> wire_;
  double seconds_ = 0;
};

// The rows of one process among those of all: [first, first + count) of each tensor; rows that are
// not there are zeros.
NamedTensors rows_of(const NamedTensors& all, int64_t first, int64_t count);

}  // namespace rondo
