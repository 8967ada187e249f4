// Loads librondo_engine.so when a verb needs it: loading libtorch takes a quarter of a second,
// which help, version and configuration errors should not wait for.
#pragma once

#include <string>

#include "cli/options.h"

namespace rondo::cli {

// Runs a verb of the engine with encoded options. Returns the exit code of the command. Throws
// Error if the verb fails, Error{failure} if the engine cannot be loaded or has another version.
int run_engine_with(const std::string& verb, const std::string& options);

template <class Options>
int run_engine(const std::string& verb, const Options& options) {
  return run_engine_with(verb, encode_options(options));
}

}  // namespace rondo::cli
