// ZeRO stage 1 (Rajbhandari et al., 2020): the moments of the optimizer are split over the
// processes of a group. Each updates the weights whose moments it owns, then all exchange them.
// Gradients are summed in full, so that steps are those of an optimizer that is not split.
#pragma once

#include "rondo/train/optimizer.h"
#include "rondo/train/task.h"

namespace rondo {

// The optimizer of a trainer: whole, or a shard of it.
class ShardedOptimizer {
 public:
  // `group` may be null. Split only if there is one and `split` says so.
  ShardedOptimizer(const OptimizerConfig& config, Network& network, ProcessGroup* group,
                   bool split);

  // `scratch`: memory for as many numbers as there are weights, if it is split; may be that of the
  // gradients.
  void step(int64_t number, double rate, double scale, const Tensor& scratch);
  // All moments, as of an optimizer that is not split; nothing in other processes than the first.
  NamedTensors gather();
  // Takes its own part of all moments.
  void load(const NamedTensors& moments);

 private:
  // A run of numbers of one parameter, which one process updates.
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
  std::vector<Piece> pieces_;    // of all processes, in the order of parameters; empty: not split
  std::vector<Tensor> own_;      // views of the weights of our pieces
  std::vector<int64_t> counts_;  // [processes]; weights of each
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace rondo
