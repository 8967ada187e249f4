// SIGINT and SIGTERM ask a run to finish its step, save and leave; a second one stops it at once.
// SIGUSR1 asks it to save and go on.
#pragma once

#include <csignal>
#include <memory>

namespace rondo {

// Handles the signals while it lives; one at a time, on the process's first thread, to which the
// system gives its signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code that goes with the signal received: 130 (SIGINT) or 143 (SIGTERM).
  int stop_code() const;
  // Whether a save was asked for since the last call.
  bool take_save_request();

 private:
  // oneDNN's matrix products use the stack pointer for something else while they run: a handler
  // must not write where it points, so it gets a stack of its own.
  std::unique_ptr<char[]> stack_;
  stack_t before_ = {};
};

}  // namespace rondo
