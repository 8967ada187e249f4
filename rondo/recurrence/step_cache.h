// Buffers for reading one token at a time: what a State holds, laid out so that a step copies only
// its own row. Keys and values stand in a buffer of two windows; the window behind the current
// token is always one contiguous piece, and once per block the second half moves to the first.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo {

// Of one level.
struct LevelCache {
  Tensor keys, values;  // [B, H, 2W, d]; the current token's place is W + phase
  Tensor bias;          // relative bias of the window [H, 1, keys seen]
  // Recurrent levels: the state, and what tokens and the cell read of it, made once per block.
  Tensor state;                         // [B, S, D]
  Tensor state_keys, state_values;      // [B, H, S, d]
  Tensor state_queries, token_queries;  // [B, H, S, d]
};

struct StepCaches {
  std::vector<LevelCache> levels;
  Tensor position;    // tokens behind each row [B]
  int64_t phase = 0;  // tokens of the current block already behind
};

}  // namespace rondo
