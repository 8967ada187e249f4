// The verbs for translation models: translate, average.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace rondo::cli {

void add_translation_verbs(CLI::App& app);

// How a translation model is decoded: beam, length, batch, weights.
void add_decoding(CLI::App* verb, DecodingOptions& options);

}  // namespace rondo::cli
