// Adam, AdamW and what all optimisers share. Adafactor is in adafactor.cpp.
#include "rondo/train/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/train/adafactor.h"

namespace rondo {
namespace {

class Adam : public Optimizer {
 public:
  Adam(const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters)
      : Optimizer(parameters), config_(config), decoupled_(config.kind == "adamw") {
    for (Slot& slot : slots()) {
      slot.moments["mean"] = at::zeros_like(slot.value);
      slot.moments["square"] = at::zeros_like(slot.value);
    }
  }

 private:
  void update(Slot& slot, const Tensor& gradient, int64_t step, double rate) override {
    const auto t = static_cast<double>(step);
    const double decay = slot.decays ? config_.weight_decay : 0.0;
    Tensor g = gradient;
    if (decay > 0.0 && !decoupled_) g = g.add(slot.value, decay);
    if (decay > 0.0 && decoupled_) slot.value.mul_(1.0 - rate * decay);
    Tensor& mean = slot.moments["mean"];
    Tensor& square = slot.moments["square"];
    mean.mul_(config_.beta1).add_(g, 1.0 - config_.beta1);
    square.mul_(config_.beta2).addcmul_(g, g, 1.0 - config_.beta2);
    const double mean_scale = 1.0 - std::pow(config_.beta1, t);
    const double square_scale = 1.0 - std::pow(config_.beta2, t);
    const Tensor root = square.sqrt().div_(std::sqrt(square_scale)).add_(config_.epsilon);
    slot.value.addcdiv_(mean, root, -rate / mean_scale);
  }

  OptimizerConfig config_;
  bool decoupled_;
};

}  // namespace

bool decays_weight(const std::string& name, const Tensor& value) {
  if (value.dim() < 2) return false;
  // Tables of vectors or biases, not maps: rows that are looked up, added or begun with.
  for (const char* table :
       {"embedding", "positions", "class_token", "relative.table", "cell.identity", ".initial"}) {
    if (name.find(table) != std::string::npos) return false;
  }
  return true;
}

Optimizer::Optimizer(const std::vector<std::pair<std::string, Tensor>>& parameters) {
  for (const auto& [name, value] : parameters) {
    slots_.push_back({name, value, decays_weight(name, value), {}});
  }
}

void Optimizer::step(int64_t step, double rate) {
  const at::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    const Tensor gradient = slot.value.grad();
    if (gradient.defined()) update(slot, gradient, step, rate);
  }
}

NamedTensors Optimizer::moments() const {
  NamedTensors all;
  for (const Slot& slot : slots_) {
    for (const auto& [kind, tensor] : slot.moments) all[kind + "." + slot.name] = tensor;
  }
  return all;
}

void Optimizer::load(const NamedTensors& moments) {
  const at::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    for (auto& [kind, tensor] : slot.moments) {
      const auto found = moments.find(kind + "." + slot.name);
      if (found == moments.end() || found->second.sizes() != tensor.sizes()) {
        throw Error(ExitCode::bad_input,
                    fmt::format("checkpoint: moment '{}.{}' is missing or has another shape", kind,
                                slot.name),
                    "the checkpoint belongs to another optimiser or model");
      }
      tensor.copy_(found->second);
    }
  }
}

std::unique_ptr<Optimizer> make_optimizer(
    const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters) {
  if (config.kind == "adafactor") return std::make_unique<Adafactor>(config, parameters);
  return std::make_unique<Adam>(config, parameters);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const torch::nn::Module& network) {
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& item : network.named_parameters()) {
    parameters.emplace_back(item.key(), item.value());
  }
  return make_optimizer(config, parameters);
}

}  // namespace rondo
