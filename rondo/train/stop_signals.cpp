// Signal handlers that only set flags.
#include "rondo/train/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace rondo {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<bool> save_requested{false};

extern "C" void on_stop_signal(int signal) {
  if (stop_signal.exchange(signal) != 0) _exit(128 + signal);
}

extern "C" void on_save_signal(int /*signal*/) { save_requested = true; }

constexpr size_t kStackBytes = size_t{1} << 16;  // with AMX, registers alone take 11 KB of it

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  save_requested = false;
  stack_ = std::make_unique<char[]>(kStackBytes);
  stack_t stack = {};
  stack.ss_sp = stack_.get();
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, &before_);
  handle(SIGINT, on_stop_signal);
  handle(SIGTERM, on_stop_signal);
  handle(SIGUSR1, on_save_signal);
}

StopSignals::~StopSignals() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  handle(SIGUSR1, SIG_DFL);
  sigaltstack(&before_, nullptr);
}

int StopSignals::stop_code() const { return stop_signal == 0 ? 0 : 128 + stop_signal; }
bool StopSignals::take_save_request() { return save_requested.exchange(false); }

}  // namespace rondo
