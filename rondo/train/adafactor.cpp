// Adafactor.
#include "rondo/train/adafactor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rondo/kernels/optimizer.h"

namespace rondo {
namespace {

constexpr double kSquareFloor = 1e-30;    // added to squared gradients
constexpr double kParameterFloor = 1e-3;  // lower bound on a parameter's RMS
constexpr double kClipping = 1.0;         // largest RMS of an update
constexpr double kDecayExponent = 0.8;
constexpr int64_t kFactoredFrom = 128;  // factored if both dimensions are at least this long

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

double moment_decay(int64_t step) {
  return 1.0 - std::pow(static_cast<double>(step), -kDecayExponent);
}

Tensor root_mean_square(const Tensor& x) { return x.square().mean().sqrt_(); }  // []

}  // namespace

Adafactor::Adafactor(const OptimizerConfig& config, const std::vector<OptimizedPart>& parts)
    : Optimizer(parts), beta1_(config.beta1) {
  for (Slot& slot : slots()) {
    const Factors f = factored_dimensions(slot.value);
    if (f.row >= 0) {
      Shape rows = slot.value.sizes().vec();
      Shape columns = rows;
      rows[static_cast<size_t>(f.column)] = 1;
      columns[static_cast<size_t>(f.row)] = 1;
      slot.moments["row"] = at::zeros(rows, slot.value.options());
      slot.moments["column"] = at::zeros(columns, slot.value.options());
    } else {
      slot.moments["square"] = at::zeros_like(slot.value);
    }
    if (beta1_ > 0.0) slot.moments["mean"] = at::zeros_like(slot.value);
  }
}

void Adafactor::update(Slot& slot, const Tensor& gradient, const Step& step) {
  const Factors f = factored_dimensions(slot.value);
  const bool matrix = f.row < 0 || slot.value.dim() == 2;
  if (matrix && is_plain(slot, gradient)) return update_plain(slot, gradient, step);
  const double decay = moment_decay(step.number);
  const Tensor g = step.scale == 1.0 ? gradient : gradient * step.scale;
  const Tensor squared = g.square().add_(kSquareFloor);
  Tensor y;
  if (f.row >= 0) {
    Tensor& row = slot.moments["row"];
    Tensor& column = slot.moments["column"];
    row.mul_(decay).add_(squared.mean(f.column, /*keepdim=*/true), 1.0 - decay);
    column.mul_(decay).add_(squared.mean(f.row, /*keepdim=*/true), 1.0 - decay);
    y = g * (row / row.mean(f.row, /*keepdim=*/true)).rsqrt_() * column.rsqrt();
  } else {
    Tensor& square = slot.moments["square"];
    square.mul_(decay).add_(squared, 1.0 - decay);
    y = g * square.rsqrt();
  }
  const Tensor size = root_mean_square(slot.value).clamp_min_(kParameterFloor);
  const Tensor clip = root_mean_square(y).div_(kClipping).clamp_min_(1.0);
  y.mul_(size.div_(clip).mul_(step.rate));
  if (beta1_ > 0.0) {
    Tensor& mean = slot.moments["mean"];
    mean.mul_(beta1_).add_(y, 1.0 - beta1_);
    y = mean;
  }
  slot.value.sub_(y);
}

// The same without a temporary as large as the parameter.
void Adafactor::update_plain(Slot& slot, const Tensor& gradient, const Step& step) const {
  const double decay = moment_decay(step.number);
  const Factors f = factored_dimensions(slot.value);
  kernels::AdafactorPart part;
  part.value = slot.value.data_ptr<float>();
  part.gradient = gradient.data_ptr<float>();
  part.scale = step.scale;
  part.rows = 1;
  part.columns = gradient.numel();
  Tensor row_factor = at::ones({1});
  Tensor column_factor;
  if (f.row >= 0) {
    part.rows = slot.value.size(0);
    part.columns = slot.value.size(1);
    Tensor means[2] = {at::empty({part.rows, 1}), at::empty({1, part.columns})};
    kernels::adafactor_means(part, kSquareFloor, means[0].data_ptr<float>(),
                             means[1].data_ptr<float>());
    // [rows, 1] or, where rows are the longer dimension, [1, columns]
    Tensor& row = slot.moments["row"];
    Tensor& column = slot.moments["column"];
    row.mul_(decay).add_(means[f.row], 1.0 - decay);
    column.mul_(decay).add_(means[f.column], 1.0 - decay);
    Tensor factors[2];
    factors[f.row] = (row / row.mean()).rsqrt_();
    factors[f.column] = column.rsqrt();
    row_factor = factors[0];
    column_factor = factors[1];
  } else {
    column_factor = at::empty_like(gradient);
    kernels::adafactor_square(part, kSquareFloor, decay, slot.moments["square"].data_ptr<float>(),
                              column_factor.data_ptr<float>());
  }
  const auto* rows = row_factor.data_ptr<float>();
  const auto* columns = column_factor.data_ptr<float>();
  const kernels::AdafactorSizes sums = kernels::adafactor_sizes(part, rows, columns);
  const auto count = static_cast<double>(gradient.numel());
  const double size = std::max(kParameterFloor, std::sqrt(sums.value / count));
  const double clip = std::max(1.0, std::sqrt(sums.update / count) / kClipping);
  float* mean = beta1_ > 0.0 ? slot.moments["mean"].data_ptr<float>() : nullptr;
  kernels::adafactor_apply(part, rows, columns, step.rate * size / clip, mean, beta1_);
}

}  // namespace rondo
