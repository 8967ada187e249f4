// Gradients against finite differences, in double: what autograd says of a scalar projection of an
// output must be what the output does when an entry is moved.
#pragma once

#include <functional>

#include "rondo/nn/module.h"
#include "rondo/nn/tensor_file.h"

namespace rondo::test {

// Standard normal numbers, a function of (shape, seed) alone.
Tensor noise(const Shape& shape, uint64_t seed, at::ScalarType type = at::kDouble);

// A leaf with a gradient, filled with noise.
Tensor variable(const Shape& shape, uint64_t seed);

// Draws `module`'s parameters, turns it to double and adds noise of this deviation to every
// parameter, so that nothing stays at a special value (zero signals, unit scales).
void make_generic(torch::nn::Module& module, uint64_t seed, double deviation = 0.3);

// The same in float, leaving residual coefficients at 1 (a deep product of others explodes).
void unsettle(torch::nn::Module& module, uint64_t seed, double deviation);

// A module's parameters together with more variables.
NamedTensors with_parameters(const torch::nn::Module& module, NamedTensors more = {});

struct GradcheckOptions {
  double tolerance = 1e-6;  // relative to the largest gradient entry of the same tensor
  double step = 1e-5;
};

// `output` computes from the present values of `variables` (double leaves) and must be repeatable.
// Small tensors are moved entry by entry; large ones at some entries and along random directions,
// which every entry takes part in. A variable that autograd reports no gradient for must not
// matter.
void gradcheck(const std::function<Tensor()>& output, const NamedTensors& variables,
               const GradcheckOptions& options = {});

}  // namespace rondo::test
