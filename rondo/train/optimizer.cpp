// Adam, AdamW and what all optimizers share. Adafactor is in adafactor.cpp.
#include "rondo/train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/kernels/optimizer.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/train/adafactor.h"

namespace rondo {
namespace {

class Adam : public Optimizer {
 public:
  Adam(const OptimizerConfig& config, const std::vector<OptimizedPart>& parts)
      : Optimizer(parts), config_(config), decoupled_(config.kind == "adamw") {
    for (Slot& slot : slots()) {
      slot.moments["mean"] = at::zeros_like(slot.value);
      slot.moments["square"] = at::zeros_like(slot.value);
    }
  }

 private:
  void update(Slot& slot, const Tensor& gradient, const Step& step) override {
    const double decay = slot.decays ? config_.weight_decay : 0.0;
    Tensor& mean = slot.moments["mean"];
    Tensor& square = slot.moments["square"];
    if (is_plain(slot, gradient)) {
      parts_.push_back({slot.value.data_ptr<float>(), gradient.data_ptr<float>(),
                        mean.data_ptr<float>(), square.data_ptr<float>(), gradient.numel(), decay});
      return;
    }
    const auto t = static_cast<double>(step.number);
    Tensor g = step.scale == 1.0 ? gradient : gradient * step.scale;
    if (decay > 0.0 && !decoupled_) g = g.add(slot.value, decay);
    if (decay > 0.0 && decoupled_) slot.value.mul_(1.0 - step.rate * decay);
    mean.mul_(config_.beta1).add_(g, 1.0 - config_.beta1);
    square.mul_(config_.beta2).addcmul_(g, g, 1.0 - config_.beta2);
    const double mean_scale = 1.0 - std::pow(config_.beta1, t);
    const double square_scale = 1.0 - std::pow(config_.beta2, t);
    const Tensor root = square.sqrt().div_(std::sqrt(square_scale)).add_(config_.epsilon);
    slot.value.addcdiv_(mean, root, -step.rate / mean_scale);
  }

  void finish(const Step& step) override {
    kernels::AdamStep how;
    how.beta1 = config_.beta1;
    how.beta2 = config_.beta2;
    how.epsilon = config_.epsilon;
    how.rate = step.rate;
    how.scale = step.scale;
    how.decoupled = decoupled_;
    how.number = step.number;
    kernels::adam_step(parts_, how);
    parts_.clear();
  }

  OptimizerConfig config_;
  bool decoupled_;
  std::vector<kernels::AdamPart> parts_;  // of the current step
};

}  // namespace

bool decays_weight(const std::string& name, const Tensor& value) {
  if (value.dim() < 2) return false;
  // Tables of vectors or biases that are looked up, added or used as initial values: not maps.
  for (const char* table :
       {"embedding", "positions", "class_token", "relative.table", "cell.identity", ".initial"}) {
    if (name.find(table) != std::string::npos) return false;
  }
  return true;
}

Optimizer::Optimizer(const std::vector<OptimizedPart>& parts) {
  for (const OptimizedPart& part : parts) slots_.push_back({part, {}});
}

void Optimizer::step(int64_t step, double rate, double scale) {
  const at::NoGradGuard no_grad;
  const Step how = {step, rate, scale};
  for (Slot& slot : slots_) {
    const Tensor gradient = slot.value.grad();
    if (gradient.defined()) update(slot, gradient, how);
  }
  finish(how);
  // Kernels bypass torch's version counter, by which cached copies of weights are invalidated.
  for (Slot& slot : slots_) torch::autograd::impl::bump_version(slot.value);
}

bool Optimizer::is_plain(const Slot& slot, const Tensor& gradient) {
  if (nn::kernels_in_use() == nn::Kernels::reference) return false;
  const auto plain = [](const Tensor& t) {
    return t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous();
  };
  const bool moments = std::all_of(slot.moments.begin(), slot.moments.end(),
                                   [&](const auto& moment) { return plain(moment.second); });
  return moments && plain(slot.value) && plain(gradient);
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
                    fmt::format("checkpoint: moment '{}.{}' is missing or has the wrong shape",
                                kind, slot.name),
                    "the checkpoint belongs to a different optimizer or model");
      }
      tensor.copy_(found->second);
    }
  }
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OptimizedPart>& parts) {
  if (config.kind == "adafactor") return std::make_unique<Adafactor>(config, parts);
  return std::make_unique<Adam>(config, parts);
}

std::unique_ptr<Optimizer> make_optimizer(
    const OptimizerConfig& config, const std::vector<std::pair<std::string, Tensor>>& parameters) {
  std::vector<OptimizedPart> parts;
  for (const auto& [name, value] : parameters) {
    parts.push_back({name, value, decays_weight(name, value)});
  }
  return make_optimizer(config, parts);
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
