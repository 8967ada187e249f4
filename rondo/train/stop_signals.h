// SIGINT and SIGTERM ask a run to finish its step, save and leave; a second one stops it at once.
// SIGUSR1 asks it to save and go on.
#pragma once

namespace rondo {

// Handles the signals while it lives; one at a time.
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
};

}  // namespace rondo
