// Universal Transformer: the static signal.
#include "rondo/recurrence/universal.h"

#include <cmath>

namespace rondo {

Tensor static_signal(const Tensor& positions, int64_t level, int64_t width,
                     const at::TensorOptions& options) {
  if (options.device().is_meta()) {
    return at::empty({positions.size(0), positions.size(1), width}, options);
  }
  const Tensor k = at::arange(1, width + 1, at::kDouble);                             // [D]
  const Tensor rate = at::pow(10000.0, -2.0 * k / static_cast<double>(width));        // [D]
  const Tensor by_position = (positions.to(at::kDouble) + 1.0).unsqueeze(-1) * rate;  // [B, T, D]
  const Tensor by_level = static_cast<double>(level) * rate;                          // [D]
  const Tensor even = k.remainder(2.0).eq(0.0);                                       // [D]
  const Tensor table =
      at::where(even, by_position.sin() + by_level.sin(), by_position.cos() + by_level.cos());
  return table.to(options);
}

namespace {

// Dimensions are numbered from 1: sine for even ones, cosine for odd ones.
std::vector<double> waves(double number, const std::vector<double>& rates) {
  std::vector<double> code(rates.size());
  for (size_t i = 0; i < rates.size(); ++i) {
    code[i] = i % 2 == 1 ? std::sin(number * rates[i]) : std::cos(number * rates[i]);
  }
  return code;
}

}  // namespace

CompiledStaticSignal::CompiledStaticSignal(int64_t levels, int64_t width) {
  for (int64_t k = 1; k <= width; ++k) {
    rates_.push_back(std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(width)));
  }
  for (int64_t level = 1; level <= levels; ++level) {
    level_part_.push_back(waves(static_cast<double>(level), rates_));
  }
}

void CompiledStaticSignal::position_part(int64_t position, double* code) const {
  const std::vector<double> part = waves(static_cast<double>(position + 1), rates_);
  std::copy(part.begin(), part.end(), code);
}

void CompiledStaticSignal::add(int64_t level, const double* position_part, int64_t first,
                               int64_t last, float* x) const {
  const double* by_level = level_part_[static_cast<size_t>(level - 1)].data();
  for (int64_t k = first; k < last; ++k) {
    x[k] += static_cast<float>(position_part[k] + by_level[k]);
  }
}

}  // namespace rondo
