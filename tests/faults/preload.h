// Running the command with tests/faults/preload.cpp, which lists the faults.
#pragma once

#include "tests/cli/process.h"

namespace rondo::testing {

// Runs the command with `fault` injected when it maps a file with `file` in its path.
inline Result rondo_with_fault(const std::string& fault, const std::string& file,
                               const Arguments& arguments) {
  Arguments words = {"LD_PRELOAD=" RONDO_FAULTS_PRELOAD, "RONDO_FAULT=" + fault,
                     "RONDO_FAULT_FILE=" + file, RONDO_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program("/usr/bin/env", words);
}

}  // namespace rondo::testing
