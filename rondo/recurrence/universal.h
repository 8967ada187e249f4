// Universal Transformer (Dehghani et al. 2019): one block, norms included, applied at every level;
// before each application, a fixed table of position and level is added to the stream.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo {

// The table for 1-based `level` at 0-based `positions` [B or 1, T] → [B or 1, T, D]. With p and j
// the 1-based position and level and k the 1-based dimension: sin(p/10000^(2k/D)) + sin(j/...) for
// even k, cos + cos for odd k. Computed in double.
Tensor static_signal(const Tensor& positions, int64_t level, int64_t width,
                     const at::TensorOptions& options);

// The same for inference: a part for the position, computed once for all levels, and one for the
// level, computed at construction.
class CompiledStaticSignal {
 public:
  CompiledStaticSignal() = default;
  CompiledStaticSignal(int64_t levels, int64_t width);
  bool there() const { return !rates_.empty(); }
  void position_part(int64_t position, double* code) const;  // [D]
  // x[k] += position part + level part, for 0-based dimensions [first, last).
  void add(int64_t level, const double* position_part, int64_t first, int64_t last, float* x) const;

 private:
  std::vector<double> rates_;                    // [D]
  std::vector<std::vector<double>> level_part_;  // [levels][D]
};

}  // namespace rondo
