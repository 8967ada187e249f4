// Adafactor.
#include "rondo/train/adafactor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rondo {
namespace {

constexpr double kSquareFloor = 1e-30;    // added to squared gradients
constexpr double kParameterFloor = 1e-3;  // least RMS a parameter is taken to have
constexpr double kClipping = 1.0;         // largest RMS of an update
constexpr double kDecayExponent = 0.8;
constexpr int64_t kFactoredFrom = 128;  // both dimensions at least this long

// The two longest dimensions: rows (second longest) and columns (longest), or {-1, -1}.
struct Factors {
  int64_t row = -1;
  int64_t column = -1;
};

Factors factored_dimensions(const Tensor& value) {
  if (value.dim() < 2) return {};
  std::vector<int64_t> order(static_cast<size_t>(value.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return value.size(a) < value.size(b); });
  const Factors f = {order[order.size() - 2], order[order.size() - 1]};
  return value.size(f.row) >= kFactoredFrom ? f : Factors{};
}

double root_mean_square(const Tensor& x) { return std::sqrt(x.square().mean().item<double>()); }

}  // namespace

Adafactor::Adafactor(const OptimizerConfig& config,
                     const std::vector<std::pair<std::string, Tensor>>& parameters)
    : Optimizer(parameters), beta1_(config.beta1) {
  for (Slot& slot : slots()) {
    const Factors f = factored_dimensions(slot.value);
    if (f.row >= 0) {
      Shape rows = slot.value.sizes().vec();
      Shape columns = rows;
      rows[static_cast<size_t>(f.column)] = 1;
      columns[static_cast<size_t>(f.row)] = 1;
      slot.moments["row"] = at::zeros(rows);
      slot.moments["column"] = at::zeros(columns);
    } else {
      slot.moments["square"] = at::zeros_like(slot.value);
    }
    if (beta1_ > 0.0) slot.moments["mean"] = at::zeros_like(slot.value);
  }
}

void Adafactor::update(Slot& slot, const Tensor& gradient, int64_t step, double rate) {
  const double decay = 1.0 - std::pow(static_cast<double>(step), -kDecayExponent);
  const Tensor squared = gradient.square().add_(kSquareFloor);
  const Factors f = factored_dimensions(slot.value);
  Tensor y;
  if (f.row >= 0) {
    Tensor& row = slot.moments["row"];
    Tensor& column = slot.moments["column"];
    row.mul_(decay).add_(squared.mean(f.column, /*keepdim=*/true), 1.0 - decay);
    column.mul_(decay).add_(squared.mean(f.row, /*keepdim=*/true), 1.0 - decay);
    y = gradient * (row / row.mean(f.row, /*keepdim=*/true)).rsqrt_() * column.rsqrt();
  } else {
    Tensor& square = slot.moments["square"];
    square.mul_(decay).add_(squared, 1.0 - decay);
    y = gradient * square.rsqrt();
  }
  const double size = std::max(kParameterFloor, root_mean_square(slot.value));
  const double clip = std::max(1.0, root_mean_square(y) / kClipping);
  y.mul_(rate * size / clip);
  if (beta1_ > 0.0) {
    Tensor& mean = slot.moments["mean"];
    mean.mul_(beta1_).add_(y, 1.0 - beta1_);
    y = mean;
  }
  slot.value.sub_(y);
}

}  // namespace rondo
