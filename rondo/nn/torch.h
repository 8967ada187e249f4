// The one place where libtorch's headers come in: tensors, modules and autograd, nothing more.
// torch/torch.h would cost every file twice the compile time for parts (data, jit, optim) unused
// here.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace rondo {

using at::Tensor;
using Shape = std::vector<int64_t>;

}  // namespace rondo
