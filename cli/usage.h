// Error messages for an invalid command line.
#pragma once

#include <CLI/CLI.hpp>

#include "rondo/base/error.h"

namespace rondo::cli {

// Error{usage} for a command line that `app` could not parse: the verb, what is wrong with it, and
// the closest verb or option if a name is mistyped.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace rondo::cli
