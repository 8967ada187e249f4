// The language model that others are compared with, for all cases that need it.
#pragma once

#include "bench/cases/parts.h"

namespace rondo {

constexpr int64_t kTextRows = 16;
constexpr int64_t kTextTokens = 256;

// The network all libraries have: every token sees itself and all earlier ones.
LanguageModelConfig causal_model();

// What bench/peers/lm.py must build to have the same network. `what`: train, forward or decode.
std::vector<std::string> language_peer_words(const LanguageModelConfig& config, const char* what,
                                             const char* precision);

}  // namespace rondo
