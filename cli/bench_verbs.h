// Command line of rondo bench.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_bench_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
