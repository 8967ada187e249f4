// Optimizers over named parameters; moments are named tensors that a checkpoint can hold. A step is
// a pure function of (parameters, gradients, moments, step number, rate).
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
  // Updates every parameter that has a gradient; gradients are multiplied by `scale` on the fly
  // (not in place). `step` counts from 1.
  void step(int64_t step, double rate, double scale = 1.0);

  // Moments under "<kind>.<parameter>"; load() throws Error{bad_input} if they do not fit.
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
  // Called after update() has seen every slot, for work that is faster when batched.
  virtual void finish(const Step& /*step*/) {}
  std::vector<Slot>& slots() { return slots_; }
  // Whether our own kernels can handle these: contiguous fp32 on the CPU.
  static bool is_plain(const Slot& slot, const Tensor& gradient);

 private:
  std::vector<Slot> slots_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const torch::nn::Module& network);

// An optimizer over loose tensors, for example in tests.
std::unique_ptr<Optimizer> make_optimizer(
    const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters);

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OptimizedPart>& parts);

// Whether weight decay applies: to matrices and kernels, but not to norms, biases (including
// relative ones), scales, coefficients, embeddings, positions and initial states.
bool decays_weight(const std::string& name, const Tensor& value);

}  // namespace rondo
