// What librondo_engine.so exports: C functions that exchange text, so that a program and an engine
// of different versions notice it instead of reading each other's memory wrongly.
#pragma once

#include <cstdint>

#include "rondo/base/version.h"

namespace rondo::cli {

// Rises whenever a function below or the format of its arguments changes.
constexpr int kEngineInterface = 1;

}  // namespace rondo::cli

extern "C" {

// "0.1.0, interface 1". The program calls nothing else of an engine that says another one than it
// expects.
const char* rondo_engine_version();

// Runs the verb ("generate", "state read") with `bytes` bytes of options (cli/options.h). Returns
// the exit code of the command.
int rondo_engine_run(const char* verb, const char* options, uint64_t bytes);

// Why the last rondo_engine_run() failed, until the next; "" if it did not.
const char* rondo_engine_error();
}
