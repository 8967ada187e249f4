// The weights of a network before the first step: initialized from the seed, or of another model.
#pragma once

#include "rondo/config/train_config.h"
#include "rondo/model/network.h"

namespace rondo {

// Initializes every weight of `network` from the seed and then, if train.start is set, loads those
// of that run or model file. An image network may differ from it in resolution (the position map is
// resized, bicubically) and in its classes (the head keeps its initialization). Error{bad_input}
// naming every other difference.
void start_weights(Network& network, const TrainConfig& train);

// Resizes positions for another image size: a map [1, C, h, w], or a sequence [1, T, C] of square
// grids preceded by `class_tokens` vectors without a position. Unchanged if they already fit.
Tensor resize_positions(const Tensor& positions, const Shape& wanted, int64_t class_tokens);

}  // namespace rondo
