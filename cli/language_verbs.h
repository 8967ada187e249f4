// The verbs for language models: train, eval, generate, state, tokenizer.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

// `exit_code` receives what a verb ends with when that is neither success nor an error.
void add_language_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
