// Exceptions as the command reports them. Used by the program and by its engine, since no exception
// crosses the interface between them.
#pragma once

#include <string>

#include "rondo/base/error.h"

namespace rondo::cli {

struct Failure {
  ExitCode code = ExitCode::failure;
  std::string text;
};

// Message and exit code of the exception being handled.
Failure current_failure();

}  // namespace rondo::cli
