// The verbs eval, compare, generate, serve, state and tokenizer.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

// `exit_code` receives the exit code of a verb that ends with neither success nor an exception.
void add_language_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
