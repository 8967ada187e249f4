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

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  save_requested = false;
  handle(SIGINT, on_stop_signal);
  handle(SIGTERM, on_stop_signal);
  handle(SIGUSR1, on_save_signal);
}

StopSignals::~StopSignals() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  handle(SIGUSR1, SIG_DFL);
}

int StopSignals::stop_code() const { return stop_signal == 0 ? 0 : 128 + stop_signal; }
bool StopSignals::take_save_request() { return save_requested.exchange(false); }

}  // namespace rondo
