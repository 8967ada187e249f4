// ZeRO stage 1 (Rajbhandari et al., 2020): the optimizer's moments are sharded over the processes
// of a group. Each updates the weights whose moments it owns, then all exchange them. Gradients are
// summed in full, so that steps equal those of an unsharded optimizer.
#pragma once

#include "rondo/train/optimizer.h"
#include "rondo/train/task.h"

namespace rondo {

// The optimizer of a trainer: whole, or one shard of it.
class ShardedOptimizer {
 public:
  // `group` may be null. Sharded only if there is a group and `split` is true.
  ShardedOptimizer(const OptimizerConfig& config, Network& network, ProcessGroup* group,
                   bool split);

  // `scratch`: memory for as many numbers as there are weights, if sharded; may be that of the
  // gradients.
  void step(int64_t number, double rate, double scale, const Tensor& scratch);
  // All moments, as of an unsharded optimizer; empty except on rank 0.
  NamedTensors gather();
  // Loads this process's share of all moments.
  void load(const NamedTensors& moments);

 private:
  // A range of elements of one parameter, updated by one process.
  struct Piece {
    std::string name;
    Tensor whole;
    int64_t begin = 0;
    int64_t count = 0;
    int64_t owner = 0;

    bool is_all() const { return count == whole.numel(); }
  };
  void cut(bool between_tensors);
  void exchange_weights(const Tensor& scratch);
  NamedTensors own_part(const NamedTensors& moments) const;

  ProcessGroup* group_;
  std::vector<Piece> pieces_;    // of all processes, in parameter order; empty: not sharded
  std::vector<Tensor> own_;      // views of the weights of our pieces
  std::vector<int64_t> counts_;  // [processes]; weights per process
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace rondo
