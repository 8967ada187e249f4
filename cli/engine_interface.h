// The exports of librondo_engine.so: C functions that exchange text, so that a version mismatch
// between program and engine is detected instead of corrupting memory.
#pragma once

#include <cstdint>

#include "rondo/base/version.h"

namespace rondo::cli {

// Incremented whenever a function below or the format of its arguments changes.
constexpr int kEngineInterface = 1;

}  // namespace rondo::cli

extern "C" {

// For example "0.1.0, interface 1". If this is not what the program expects, it calls no other
// function.
const char* rondo_engine_version();

// Runs the verb ("generate", "state read") with `bytes` bytes of options (cli/options.h). Returns
// the exit code of the command.
int rondo_engine_run(const char* verb, const char* options, uint64_t bytes);

// Why the last rondo_engine_run() failed, valid until the next call; "" if it did not.
const char* rondo_engine_error();
}
