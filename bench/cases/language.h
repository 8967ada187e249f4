// The reference language model for comparisons, shared by several cases.
#pragma once

#include "bench/cases/parts.h"

namespace rondo {

constexpr int64_t kTextRows = 16;
constexpr int64_t kTextTokens = 256;

// The network every library supports: each token sees itself and all earlier ones.
LanguageModelConfig causal_model();

// Arguments for bench/peers/lm.py to build the same network. `what`: train, forward or decode.
std::vector<std::string> language_peer_words(const LanguageModelConfig& config, const char* what,
                                             const char* precision);

}  // namespace rondo
