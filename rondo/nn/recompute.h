// Activation checkpointing: a piece of the forward pass whose inner activations are not kept but
// recomputed in the backward pass, with the same random draws.
#pragma once

#include <functional>

#include "rondo/nn/torch.h"

namespace rondo::nn {

// y = first(x), keeping only x. The backward pass computes again(x) with a graph; it must give the
// same y, and its gradients flow into x and the parameters used. x must require a gradient.
using Piece = std::function<Tensor(const Tensor&)>;
Tensor recompute_in_backward(const Tensor& x, const Piece& first, const Piece& again);

}  // namespace rondo::nn
