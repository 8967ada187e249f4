// What the papers' own parameters are while a network trains: every residual coefficient (SReT's
// LRC), gates of memories, the size of every level's signals (RingFormer). Read from the weights
// alone, no forward pass, so it costs next to nothing.
#pragma once

#include "rondo/train/task.h"

namespace rondo {

// By name:
//   coefficient/<path>.<identity|branch>.<sub-layer>   the coefficient
//   gate/<path>                                        mean of a memory's gate, σ(gate); those of
//                                                      recurrent cells are LanguageTask::probe()'s
//   signal/<path>                                      ‖up·down‖, the Frobenius norm of a signal
Metrics weight_metrics(const Network& network);

}  // namespace rondo
