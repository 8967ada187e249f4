// Synchronous data parallelism: each process computes the gradients of its own rows, and an
// all-reduce yields the step that one process with all rows would take. Gradients that are complete
// early (Network::gradient_stages) are sent while the backward pass computes the others, which
// follow at its end, together with the loss, the number of labels and each process's requests
// (stop, save), so that all processes make the same decisions.
#pragma once

#include "rondo/nn/synchronized_norm.h"
#include "rondo/train/checkpoint.h"
#include "rondo/train/step.h"

namespace rondo {

// Requests of one process, or of any process in a group.
struct StepRequests {
  int stop_code = 0;   // exit code for the signal received; 0 = none
  bool save = false;   // save a checkpoint now
  bool moved = false;  // the run folder was moved
};

class DataParallel {
 public:
  // If `group` is null, reductions do nothing. Both must outlive this object.
  DataParallel(ProcessGroup* group, Network& network, const TrainConfig& config);

  bool is_alone() const { return group_ == nullptr; }
  bool is_first() const { return shard().is_first(); }
  Shard shard() const { return shard_of(group_); }

  // For compute_gradients(): begins to send the gradients of a stage. Empty without a group.
  nn::StagesOfGradients::Listener sender();
  // Sums gradients (left in the parameters), losses and requests over the processes, and averages
  // the network's buffers (running statistics). A parameter that has no gradient in any process
  // stays without one.
  StepLoss reduce(const StepLoss& mine, StepRequests& requests);
  // Total seconds spent in reduce(), including waiting for the slowest process, and in sender().
  double seconds() const { return seconds_; }
  // The contiguous memory of all gradients; after reduce() they are views of it. Undefined without
  // a group.
  Tensor gradients() const { return is_alone() ? Tensor() : flat_.narrow(0, 0, gradient_count_); }
  // Reduces only the requests, between batches of an evaluation.
  void agree(StepRequests& requests);

  // Broadcasts the newest checkpoint, as found by rank 0.
  std::optional<CheckpointFolder::Found> share(std::optional<CheckpointFolder::Found> found);
  // Rank 0 gets the rows of all processes, the others nothing.
  NamedTensors gather_rows(const NamedTensors& mine);
  // Error{failure} naming a rank whose weights differ from those of rank 0.
  void require_same_weights();
  // Waits until rank 0 has finished its exclusive work.
  void wait_for_first();

 private:
  // A tensor's offset in flat_.
  struct Place {
    Tensor tensor;
    int64_t begin = 0;
  };
  // The gradients of a stage, those not sent early last: where parameters_ and elements of flat_
  // end.
  struct Stage {
    size_t parameters = 0;
    int64_t elements = 0;
  };
  void arrange(const Network& network);
  void send_stages(size_t count);
  void pack_gradients(const Stage& from, const Stage& to);
  void pack_rest(const StepLoss& mine, const StepRequests& requests);
  void sum();
  StepLoss unpack(StepRequests& requests);

  ProcessGroup* group_;
  Network& network_;
  std::optional<nn::SynchronizedNorms> norms_;  // with train.sync_batch_norm
  bool narrow_;                                 // gradients are sent as bf16
  std::vector<Stage> stages_;
  size_t sent_ = 0;  // stages of this step
  std::vector<Place> parameters_;
  std::vector<Place> buffers_;
  int64_t gradient_count_ = 0;  // elements of all gradients
  int64_t reports_ = 0;         // offset of the processes' reports
  Tensor flat_;                 // gradients by stage, buffers, flags of defined gradients, reports
  std::vector<uint16_t> wire_;
  double seconds_ = 0;
  std::future<void> sending_;  // uses the memory above, so it is destroyed first
};

// The rows of one process: [first, first + count) of each tensor; rows past the end are zero.
NamedTensors rows_of(const NamedTensors& all, int64_t first, int64_t count);

}  // namespace rondo
