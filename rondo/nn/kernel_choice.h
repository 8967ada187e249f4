// Which implementation of an operation runs: our fused kernels, or the plain torch operations they
// must match ("reference"), for comparison and debugging.
#pragma once

namespace rondo::nn {

enum class Kernels { fused, reference };

// Process-wide; must not change while a network is running.
void use_kernels(Kernels kernels);
Kernels kernels_in_use();

}  // namespace rondo::nn
