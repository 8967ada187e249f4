// SIGINT, SIGTERM and SIGHUP ask a run to finish its step, save and exit; a second SIGINT or
// SIGTERM stops it immediately. SIGUSR1 asks it to save and continue. A signal that was ignored
// when the process started (nohup, a shell's background jobs) stays ignored. SIGPIPE is ignored:
// the reader of our messages may exit before the last checkpoint is written.
#pragma once

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

namespace rondo {

// Handles the signals during its lifetime; one instance at a time, on the main thread, to which the
// system delivers signals. The command blocks SIGUSR1 from its start until here: one that arrived
// in between is handled now.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code for the signal received, 128 plus its number: 129 (SIGHUP), 130 (SIGINT) or
  // 143 (SIGTERM).
  int stop_code() const;
  bool save_requested() const;
  // Whether a save was requested since the last call.
  bool take_save_request();

 private:
  void handle(int signal, void (*handler)(int));

  // oneDNN's matmul kernels use the stack pointer for other purposes while they run: a handler must
  // not write where it points, so it gets its own stack.
  std::unique_ptr<char[]> stack_;
  stack_t stack_before_ = {};
  sigset_t mask_before_ = {};
  std::vector<std::pair<int, struct sigaction>> actions_before_;
};

}  // namespace rondo
