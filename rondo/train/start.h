// What a network's weights are before the first step: drawn, or those of another model.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/model/network.h"

namespace rondo {

// Draws every weight of `network` from the seed and then, if train.start says so, takes those of
// that run or model file. An image network may differ from it in resolution (the position map is
// resized, bicubically) and in its classes (the head stays drawn). Error{bad_input} naming every
// other difference.
void start_weights(Network& network, const TrainConfig& train);

// Positions of one image size for another: a map [1, C, h, w], or a sequence [1, T, C] of square
// grids in which `class_tokens` vectors without a place come first. Unchanged if they fit already.
Tensor resize_positions(const Tensor& positions, const Shape& wanted, int64_t class_tokens);

}  // namespace rondo
