// Gradients against finite differences, in double: autograd's gradient of a scalar projection of an
// output must match the change when an entry is moved.
#pragma once

#include <functional>

#include "rondo/nn/module.h"
#include "rondo/nn/tensor_file.h"

namespace rondo::test {

// Standard normal numbers that depend only on (shape, seed).
Tensor noise(const Shape& shape, uint64_t seed, at::ScalarType type = at::kDouble);

// A leaf with a gradient, filled with noise.
Tensor variable(const Shape& shape, uint64_t seed);

// Draws `module`'s parameters, converts it to double and adds noise of this deviation to every
// parameter, so that none keeps a special value (zero signals, unit scales).
void make_generic(torch::nn::Module& module, uint64_t seed, double deviation = 0.3);

// The same in float, leaving residual coefficients at 1 (a deep product of others explodes).
void unsettle(torch::nn::Module& module, uint64_t seed, double deviation);

// A module's parameters together with more variables.
NamedTensors with_parameters(const torch::nn::Module& module, NamedTensors more = {});

struct GradcheckOptions {
  double tolerance = 1e-6;  // relative to the largest gradient entry of the same tensor
  double step = 1e-5;
};

// `output` is computed from the current values of `variables` (double leaves) and must be
// repeatable. Small tensors are moved entry by entry; large ones at some entries and along random
// directions that involve all entries. A variable for which autograd reports no gradient must have
// no effect.
void gradcheck(const std::function<Tensor()>& output, const NamedTensors& variables,
               const GradcheckOptions& options = {});

}  // namespace rondo::test
