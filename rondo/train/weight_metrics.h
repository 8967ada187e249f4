// The papers' own parameters during training: every residual coefficient (SReT's LRC), memory
// gates, the norm of every level's signals (RingFormer). Computed from the weights alone, without a
// forward pass, so the cost is negligible.
#pragma once

#include "rondo/train/task.h"

namespace rondo {

// Keys:
//   coefficient/<path>.<identity|branch>.<sub-layer>   the coefficient
//   gate/<path>                                        mean of a memory's gate, σ(gate); those of
//                                                      recurrent cells are LanguageTask::probe()'s
//   signal/<path>                                      ‖up·down‖, the Frobenius norm of a signal
Metrics weight_metrics(const Network& network);

}  // namespace rondo
