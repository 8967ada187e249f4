// Activation checkpointing: a piece of the forward pass whose inner activations are not kept but
// computed again during the backward pass, with the same random draws.
#pragma once

#include <functional>

#include "rondo/nn/torch.h"

namespace rondo::nn {

// y = first(x), keeping x only. In the backward pass again(x) is computed with a graph, must give
// the same y, and its gradients flow into the parameters it used and into x. x must require a
// gradient.
using Piece = std::function<Tensor(const Tensor&)>;
Tensor recompute_in_backward(const Tensor& x, const Piece& first, const Piece& again);

}  // namespace rondo::nn
