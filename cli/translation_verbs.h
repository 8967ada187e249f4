// The verbs for translation models: translate, average.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_translation_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
