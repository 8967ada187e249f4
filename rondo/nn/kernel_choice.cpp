// Kernel selection.
#include "rondo/nn/kernel_choice.h"

#include <atomic>

namespace rondo::nn {
namespace {

std::atomic<Kernels> chosen_kernels{Kernels::fused};

}  // namespace

void use_kernels(Kernels kernels) { chosen_kernels = kernels; }

Kernels kernels_in_use() { return chosen_kernels; }

}  // namespace rondo::nn
