// Optimisers over named parameters, each keeping its moments as named tensors that a checkpoint can
// hold. A step is a pure function of (parameters, gradients, moments, step number, rate).
#pragma once

#include "rondo/nn/tensor_file.h"
#include "rondo/train/config.h"

namespace rondo {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of every parameter that has a gradient; `step` counts from 1.
  void step(int64_t step, double rate);

  // Moments under "<kind>.<parameter>"; loading refuses tensors that do not fit.
  NamedTensors moments() const;
  void load(const NamedTensors& moments);

 protected:
  struct Slot {
    std::string name;
    Tensor value;
    bool decays = false;  // weight decay applies
    std::map<std::string, Tensor> moments;
  };
  Optimizer(const std::vector<std::pair<std::string, Tensor>>& parameters);
  virtual void update(Slot& slot, const Tensor& gradient, int64_t step, double rate) = 0;
  std::vector<Slot>& slots() { return slots_; }

 private:
  std::vector<Slot> slots_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const torch::nn::Module& network);

// Optimiser over loose tensors, for tests and other uses.
std::unique_ptr<Optimizer> make_optimizer(
    const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters);

// Whether weight decay applies: matrices and kernels, but not norms, biases (relative ones too),
// scales, coefficients, embeddings, positions and initial states.
bool decays_weight(const std::string& name, const Tensor& value);

}  // namespace rondo
