// Metrics computed from named parameters.
#include "rondo/train/weight_metrics.h"

#include <cmath>

namespace rondo {
namespace {

// The part before the last dot if the name ends with ".`end`"; empty otherwise.
std::string before(const std::string& name, const std::string& end) {
  const size_t length = end.size() + 1;
  if (name.size() <= length || name.compare(name.size() - length, length, "." + end) != 0)
    return "";
  return name.substr(0, name.size() - length);
}

bool has_part(const std::string& path, const char* part) {
  return ("." + path + ".").find(std::string(".") + part + ".") != std::string::npos;
}

void add_coefficients(const std::string& name, const Tensor& values, Metrics& metrics) {
  const Tensor flat = values.detach().to(at::kDouble).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    metrics["coefficient/" + name + "." + std::to_string(i)] = flat.data_ptr<double>()[i];
  }
}

// ‖upᵀ down‖² = tr((up upᵀ)(down downᵀ)): matrices only as large as the rank.
double low_rank_norm(const Tensor& up, const Tensor& down) {
  const Tensor a = at::matmul(up, up.t()).to(at::kDouble);
  const Tensor b = at::matmul(down, down.t()).to(at::kDouble);
  return std::sqrt(std::max(0.0, (a * b).sum().item<double>()));
}

}  // namespace

Metrics weight_metrics(const Network& network) {
  const at::NoGradGuard no_grad;
  const auto parameters = network.named_parameters();
  Metrics metrics;
  for (const auto& item : parameters) {
    const std::string& name = item.key();
    const Tensor& value = item.value();
    if (const std::string path = before(name, "up"); has_part(path, "signal")) {
      const Tensor* down = parameters.find(path + ".down");
      if (down != nullptr) metrics["signal/" + path] = low_rank_norm(value, *down);
    } else if (const std::string full = before(name, "full"); has_part(full, "signal")) {
      metrics["signal/" + full] = value.norm().item<double>();
    } else if (const std::string gate = before(name, "gate"); !gate.empty()) {
      metrics["gate/" + gate] = at::sigmoid(value).mean().item<double>();
    } else if (has_part(name, "residual") &&
               (!before(name, "identity").empty() || !before(name, "branch").empty())) {
      add_coefficients(name, value, metrics);
    }
  }
  return metrics;
}

}  // namespace rondo
