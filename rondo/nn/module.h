// Base class of every module that owns weights. A module declares each parameter with its shape and
// initial distribution; values are drawn once for the whole model, by name, so that a weight
// depends only on (seed, its name, its initializer), never on the order of construction.
#pragma once

#include <map>

#include "rondo/nn/torch.h"

namespace rondo::nn {

// The distribution of a parameter's initial values.
struct Initializer {
  enum class Kind { constant, normal, uniform, truncated_normal };
  Kind kind = Kind::constant;
  double scale = 0.0;     // the constant, the standard deviation, or the bound of the interval
  int64_t zero_row = -1;  // this row is zeroed afterwards (the padding row of an embedding)
};

Initializer constant(double value);
Initializer normal(double deviation);
Initializer uniform(double bound);
// Normal cut at two deviations of its parent, widened so that the result has `deviation`.
Initializer truncated_normal(double deviation);
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out, double gain = 1.0);
// torch's default for a linear layer's weight and bias.
Initializer torch_default(int64_t fan_in);

class Module : public torch::nn::Module {
 public:
  const std::map<std::string, Initializer>& initializers() const { return initializers_; }

 protected:
  // Declares a trainable tensor. Uninitialized until initialize() or a load.
  Tensor parameter(const std::string& name, const Shape& shape, Initializer initializer);
  // Declares a tensor that is saved with the model but not trained.
  Tensor buffer(const std::string& name, Tensor value);

 private:
  std::map<std::string, Initializer> initializers_;
};

// An array of modules of one kind, named by number, from which levels borrow their weights.
template <class Part>
class Bank : public Module {
 public:
  void add(std::shared_ptr<Part> part) {
    parts_.push_back(register_module(std::to_string(parts_.size()), std::move(part)));
  }
  Part& operator[](int64_t index) const { return *parts_.at(static_cast<size_t>(index)); }
  int64_t size() const { return static_cast<int64_t>(parts_.size()); }

 private:
  std::vector<std::shared_ptr<Part>> parts_;
};

// While an instance exists on this thread, parameters get a shape but no memory: enough to count
// them and to trace a forward pass, however large the model.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;
  static bool active();

 private:
  bool before_;
};

// Draws every parameter below `root` from its initializer.
void initialize(torch::nn::Module& root, uint64_t seed);

// A generator that depends only on (seed, purpose, index).
at::Generator counter_generator(uint64_t seed, const std::string& purpose, uint64_t index = 0);

}  // namespace rondo::nn
