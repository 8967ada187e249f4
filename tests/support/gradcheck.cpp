// Central differences.
#include "tests/support/gradcheck.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace rondo::test {
namespace {

constexpr int64_t kAllEntries = 16;   // up to this size, all entries are moved
constexpr int64_t kSomeEntries = 8;   // of larger tensors, this many
constexpr uint64_t kDirections = 2;   // and this many random directions
constexpr double kSmallShare = 1e-3;  // gradients below this share of the largest are rounding

// One perturbation of a tensor: a direction of its shape.
std::vector<Tensor> directions_of(const Tensor& value) {
  std::vector<Tensor> all;
  const int64_t count = value.numel();
  const int64_t entries = count <= kAllEntries ? count : kSomeEntries;
  for (int64_t i = 0; i < entries; ++i) {
    const Tensor unit = at::zeros({count}, at::kDouble);
    unit[i * count / entries] = 1.0;
    all.push_back(unit.view(value.sizes()));
  }
  if (count <= kAllEntries) return all;
  for (uint64_t d = 0; d < kDirections; ++d) {
    const Tensor random = noise(value.sizes().vec(), 1000 + d);
    all.push_back(random / random.norm());
  }
  return all;
}

class Gradcheck {
 public:
  Gradcheck(const std::function<Tensor()>& output, const NamedTensors& variables,
            const GradcheckOptions& options)
      : output_(output), variables_(variables), options_(options) {
    const Tensor first = output_();
    weights_ = noise(first.sizes().vec(), 77);
    const Tensor loss = (first * weights_).sum();
    std::vector<Tensor> leaves;
    for (const auto& [name, value] : variables_) leaves.push_back(value);
    const auto found = torch::autograd::grad({loss}, leaves, {}, c10::nullopt, false, true);
    size_t i = 0;
    for (const auto& [name, value] : variables_) {
      const Tensor& g = found[i++];
      gradients_[name] = g.defined() ? g : at::zeros_like(value);
      largest_ = std::max(largest_, gradients_[name].abs().max().item<double>());
    }
  }

  void run() const {
    if (largest_ <= 0.0) {
      ADD_FAILURE() << "no variable has any gradient";
      return;
    }
    for (const auto& [name, value] : variables_) {
      const Tensor& g = gradients_.at(name);
      const double scale = std::max(g.abs().max().item<double>(), kSmallShare * largest_);
      for (const Tensor& direction : directions_of(value)) {
        const double said = (g * direction).sum().item<double>();
        const double done = derivative(value, direction);
        EXPECT_LE(std::abs(said - done) / scale, options_.tolerance)
            << name << ": autograd " << said << ", differences " << done;
      }
    }
  }

 private:
  double at_moved(Tensor value, const Tensor& direction, double step) const {
    const at::NoGradGuard no_grad;
    const Tensor before = value.clone();
    value.add_(direction, step);
    const double loss = (output_() * weights_).sum().item<double>();
    value.copy_(before);
    return loss;
  }

  double derivative(const Tensor& value, const Tensor& direction) const {
    const double h = options_.step;
    return (at_moved(value, direction, h) - at_moved(value, direction, -h)) / (2.0 * h);
  }

  const std::function<Tensor()>& output_;
  const NamedTensors& variables_;
  GradcheckOptions options_;
  Tensor weights_;
  NamedTensors gradients_;
  double largest_ = 0.0;
};

}  // namespace

Tensor noise(const Shape& shape, uint64_t seed, at::ScalarType type) {
  const auto generator = nn::counter_generator(seed, "test noise");
  return at::empty(shape, at::kDouble).normal_(0.0, 1.0, generator).to(type);
}

Tensor variable(const Shape& shape, uint64_t seed) {
  return noise(shape, seed).requires_grad_(true);
}

void make_generic(torch::nn::Module& module, uint64_t seed, double deviation) {
  nn::initialize(module, seed);
  module.to(at::kDouble);
  const at::NoGradGuard no_grad;
  uint64_t number = 0;
  for (Tensor& p : module.parameters()) p.add_(noise(p.sizes().vec(), seed + ++number), deviation);
}

void unsettle(torch::nn::Module& module, uint64_t seed, double deviation) {
  const at::NoGradGuard no_grad;
  uint64_t number = 0;
  for (auto& item : module.named_parameters()) {
    ++number;
    if (item.key().find("residual.") != std::string::npos) continue;
    Tensor& p = item.value();
    p.add_(noise(p.sizes().vec(), seed + number, p.scalar_type()), deviation);
  }
}

NamedTensors with_parameters(const torch::nn::Module& module, NamedTensors more) {
  for (const auto& item : module.named_parameters()) more["parameter " + item.key()] = item.value();
  return more;
}

void gradcheck(const std::function<Tensor()>& output, const NamedTensors& variables,
               const GradcheckOptions& options) {
  Gradcheck(output, variables, options).run();
}

}  // namespace rondo::test
