// The verbs for looking at images before training on them: data check, data preview.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_data_verbs(CLI::App& app);

}  // namespace rondo::cli
