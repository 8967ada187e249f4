// Batch norms synchronized over all processes of a group: mean and variance, and their
// contributions to the backward pass, are sums over all processes.
#pragma once

#include <functional>

#include "rondo/nn/torch.h"

namespace rondo::nn {

// Sums over the processes, in place; all must call it equally often.
using SumOverProcesses = std::function<void(double* data, int64_t count)>;

// While an instance exists, batch norms in training mode are synchronized with it.
class SynchronizedNorms {
 public:
  explicit SynchronizedNorms(SumOverProcesses sum);
  ~SynchronizedNorms();
  SynchronizedNorms(const SynchronizedNorms&) = delete;
  SynchronizedNorms& operator=(const SynchronizedNorms&) = delete;

 private:
  SumOverProcesses sum_;
};

// Null if norms are not synchronized.
const SumOverProcesses* norms_are_summed_by();

struct RunningStatistics {
  at::Tensor mean, variance;  // [C], moved by `momentum` toward the batch's
  double momentum = 0.1;
};

// Normalizes x [B, C, H, W] over all dimensions but C, with the rows of all processes.
at::Tensor synchronized_batch_norm(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& bias, const RunningStatistics& running,
                                   double epsilon, const SumOverProcesses& sum);

}  // namespace rondo::nn
