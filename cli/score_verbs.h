// The verb that scores translations: score.
#pragma once

#include <CLI/CLI.hpp>

namespace rondo::cli {

void add_score_verbs(CLI::App& app);

}  // namespace rondo::cli
