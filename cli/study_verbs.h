// Command lines of rondo study and rondo report.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_study_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
