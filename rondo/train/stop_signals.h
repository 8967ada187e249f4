// SIGINT, SIGTERM and SIGHUP ask a run to finish its step, save and leave; a second SIGINT or
// SIGTERM stops it at once. SIGUSR1 asks it to save and go on. A signal that was ignored when the
// process began (nohup, a shell's background jobs) stays ignored. SIGPIPE is ignored: whoever read
// our messages may be gone before the last checkpoint is written.
#pragma once

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

namespace rondo {

// Handles the signals while it lives; one at a time, on the process's first thread, to which the
// system gives its signals. The command blocks SIGUSR1 from its start until here: one that came in
// between is handled now.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // 0, or the exit code that goes with the signal received, 128 and its number: 129 (SIGHUP), 130
  // (SIGINT) or 143 (SIGTERM).
  int stop_code() const;
  bool save_requested() const;
  // Whether a save was asked for since the last call.
  bool take_save_request();

 private:
  void handle(int signal, void (*handler)(int));

  // oneDNN's matrix products use the stack pointer for something else while they run: a handler
  // must not write where it points, so it gets a stack of its own.
  std::unique_ptr<char[]> stack_;
  stack_t stack_before_ = {};
  sigset_t mask_before_ = {};
  std::vector<std::pair<int, struct sigaction>> actions_before_;
};

}  // namespace rondo
