// The verb for image networks: classify.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_image_verbs(CLI::App& app, int& exit_code);

}  // namespace rondo::cli
