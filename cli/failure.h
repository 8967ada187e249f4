// Exceptions as the command reports them. In the program and in its engine, since no exception
// crosses the interface between the two.
#pragma once

#include <string>

#include "rondo/base/error.h"

namespace rondo::cli {

struct Failure {
  ExitCode code = ExitCode::failure;
  std::string text;
};

// Of the exception that is being handled: one message, and its exit code.
Failure current_failure();

}  // namespace rondo::cli
