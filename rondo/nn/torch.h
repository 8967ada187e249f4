// The only place that includes libtorch headers: just tensors, modules and autograd. torch/torch.h
// would double the compile time of every file for parts (data, jit, optim) that are not used here.
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
