// The verbs for data: data check, data preview, data get.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_data_verbs(CLI::App& app);

}  // namespace rondo::cli
