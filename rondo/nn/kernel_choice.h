// Which implementation of an operation runs: our fused kernels, or the plain torch operations they
// must agree with ("reference"), for comparison and for doubt.
#pragma once

namespace rondo::nn {

enum class Kernels { fused, reference };

// For the whole process; not to be changed while a network is at work.
void use_kernels(Kernels kernels);
Kernels kernels_in_use();

}  // namespace rondo::nn
