// rondo table and rondo recipes.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

// `exit_code` receives 130 or 143 when a signal stops 'table run'.
void add_table_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
