// The verbs for runs: train, new, runs, export.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_run_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
