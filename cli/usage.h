// What is said when a command line is wrong.
#pragma once

#include <CLI/CLI.hpp>

#include "rondo/base/error.h"

namespace rondo::cli {

// Error{usage} for a command line that `app` could not read: what is wrong with which verb, and the
// nearest verb or option where a name is mistyped.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace rondo::cli
