// Optimizers over named parameters, each keeping its moments as named tensors that a checkpoint can
// hold. A step is a pure function of (parameters, gradients, moments, step number, rate).
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/nn/tensor_file.h"

namespace rondo {

// A tensor that an optimizer updates.
struct OptimizedPart {
  std::string name;
  Tensor value;
  bool decays = false;  // weight decay applies
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of every parameter that has a gradient, which is multiplied with `scale` first (its
  // own values stay); `step` counts from 1.
  void step(int64_t step, double rate, double scale = 1.0);

  // Moments under "<kind>.<parameter>"; loading refuses tensors that do not fit.
  NamedTensors moments() const;
  void load(const NamedTensors& moments);

 protected:
  struct Slot : OptimizedPart {
    std::map<std::string, Tensor> moments;
  };
  struct Step {
    int64_t number = 1;
    double rate = 0.0;
    double scale = 1.0;
  };
  explicit Optimizer(const std::vector<OptimizedPart>& parts);
  virtual void update(Slot& slot, const Tensor& gradient, const Step& step) = 0;
  // After update() has seen every slot: what is quicker done for all of them at once.
  virtual void finish(const Step& /*step*/) {}
  std::vector<Slot>& slots() { return slots_; }
  // Whether our own kernels can work on these: fp32 on the CPU without gaps.
  static bool is_plain(const Slot& slot, const Tensor& gradient);

 private:
  std::vector<Slot> slots_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const torch::nn::Module& network);

// Optimizer over loose tensors, for tests and other uses.
std::unique_ptr<Optimizer> make_optimizer(
    const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters);

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OptimizedPart>& parts);

// Whether weight decay applies: matrices and kernels, but not norms, biases (relative ones too),
// scales, coefficients, embeddings, positions and initial states.
bool decays_weight(const std::string& name, const Tensor& value);

}  // namespace rondo
