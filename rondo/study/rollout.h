// Attention rollout (Abnar and Zuidema, 2020): how much of each patch of an image reaches the
// output of a network, if every level passes on half of a token and half of what it attends to.
#pragma once

#include <vector>

#include "rondo/nn/torch.h"

namespace rondo::study {

// A [N, N] from groups of tokens p [G, H, n, n]: the mean over heads, tokens in their original
// order. `permutation` may be undefined.
Tensor whole_attention(const Tensor& p, const Tensor& permutation);

// Where the output of a stack begins: the class token, or all N tokens equally. [N]
Tensor rollout_start(int64_t tokens, bool class_token);

// start (A_L + 1)/2 … (A_1 + 1)/2: the share of each token [N] in `start` [N]. Levels A [N, N], in
// order of depth.
Tensor rollout(const std::vector<Tensor>& levels, const Tensor& start);

// Through the pooling between two stages of a pyramid, backward: the share of each token of the
// finer grid of `side` x `side` patches, given those of the coarser one [N]. Each is spread over
// the patches that its convolution (3 x 3, stride 2, padding 1) sees, 1 : 2 : 1 along both axes:
// then patches that one convolution sees count as much as those that several see. A class token
// stays what it is.
Tensor unpool(const Tensor& coarse, int64_t side, bool class_token);

}  // namespace rondo::study
