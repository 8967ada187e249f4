// Position encodings.
#include "rondo/nn/position.h"

#include <cmath>

#include "rondo/nn/ops.h"

namespace rondo::nn {
namespace {

constexpr int64_t kExact = kRelativeBuckets / 2;
constexpr auto kMaxDistance = static_cast<double>(kRelativeDistances);

}  // namespace

Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t width,
                            const at::TensorOptions& options) {
  if (options.device().is_meta()) return at::empty({count, width}, options);
  const Tensor p = at::arange(first, first + count, at::kDouble).unsqueeze(1);  // [T, 1]
  const Tensor i = at::arange(0, width, 2, at::kDouble);                        // [ceil(D/2)]
  const Tensor angle = p / at::pow(10000.0, i / static_cast<double>(width));    // [T, ceil(D/2)]
  const Tensor pairs = at::stack({angle.sin(), angle.cos()}, -1);               // [T, D/2, 2]
  return pairs.flatten(1).narrow(1, 0, width).to(options);
}

Tensor split_sinusoidal_positions(const Tensor& positions, int64_t width,
                                  const at::TensorOptions& options) {
  if (options.device().is_meta()) {
    return at::empty({positions.size(0), positions.size(1), width}, options);
  }
  const int64_t half = width / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const auto doubles = positions.options().dtype(at::kDouble);
  const Tensor rate = at::exp(at::arange(half, doubles) * -step);       // [D/2]
  const Tensor angle = positions.to(at::kDouble).unsqueeze(-1) * rate;  // [B, T, D/2]
  return at::cat({angle.sin(), angle.cos()}, -1).to(options);
}

Tensor relative_buckets(const Tensor& distance) {
  const Tensor n = distance.clamp_min(0);
  const Tensor far = n.clamp_min(kExact).to(at::kFloat) / static_cast<float>(kExact);
  const double rate = static_cast<double>(kRelativeBuckets - kExact) /
                      std::log(kMaxDistance / static_cast<double>(kExact));
  const Tensor logarithmic = (far.log() * rate).to(at::kLong) + kExact;
  return at::where(n < kExact, n, logarithmic.clamp_max(kRelativeBuckets - 1));
}

RelativeBias::RelativeBias(int64_t heads) {
  table_ = parameter("table", {heads, kRelativeBuckets},
                     normal(std::sqrt(1.0 / static_cast<double>(kRelativeBuckets))));
}

Tensor RelativeBias::tile(int64_t queries, int64_t keys, int64_t reach, const Tensor& scale) const {
  if (table_.is_meta()) return shape_only({table_.size(0), queries, keys}, table_, scale);
  // The bias depends only on reach + i - j: one value per diagonal, then rows as a sliding view.
  const Tensor distance =
      (reach + queries - 1) - at::arange(queries + keys - 1, table_.options().dtype(at::kLong));
  Tensor diagonals = table_.index_select(1, relative_buckets(distance));  // [H, Tq + Tk - 1]
  if (scale.defined()) diagonals = diagonals * scale.unsqueeze(1);
  return diagonals.unfold(1, keys, 1).flip(1);  // [H, Tq, Tk]
}

}  // namespace rondo::nn
