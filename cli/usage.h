// What the command line accepts beyond CLI11's own checks, and what is said when it is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "cli/verbs.h"
#include "rondo/base/error.h"

namespace rondo::cli {

// Accepts whole numbers from `low` to `high`.
CLI::Validator whole_number(int64_t low, int64_t high);

// --kernels: our fused kernels, or the plain operations they must agree with.
void add_kernels(CLI::App* verb, std::string& kernels);
// --threads and --kernels.
void add_computing(CLI::App* verb, ComputeOptions& how);

// --no-verify.
void add_loading(CLI::App* verb, LoadOptions& how);

// Error{usage} for a command line that `app` could not read: what is wrong with which verb, and the
// nearest verb or option where a name is mistyped.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace rondo::cli
