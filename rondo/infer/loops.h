// Trained language models with another number of loops than in training (implemented in load.cpp).
#pragma once

#include "rondo/infer/load.h"

namespace rondo {

// The same model with `loops` loops (recursive) or levels (ring, universal), sharing its weights.
// Throws Error{usage} if its levels are all distinct, or it has no weights for that many; `given`
// names it.
TrainedLanguageModel with_loops(const TrainedLanguageModel& trained, int64_t loops,
                                const std::string& given);

}  // namespace rondo
