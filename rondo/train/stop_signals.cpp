// Signal handlers that only set flags.
#include "rondo/train/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace rondo {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<bool> save_asked{false};

extern "C" void on_stop_signal(int signal) {
  int before = 0;
  if (stop_signal.compare_exchange_strong(before, signal)) return;
  // When a terminal closes, both the kernel and the shell send SIGHUP; systemd sends it right after
  // SIGTERM: a repeated SIGHUP does not ask for an immediate stop.
  if (signal == SIGHUP) return;
  if (before == SIGHUP && stop_signal.compare_exchange_strong(before, signal)) return;
  _exit(128 + signal);
}

extern "C" void on_save_signal(int /*signal*/) { save_asked = true; }

constexpr size_t kStackBytes = size_t{1} << 16;  // with AMX, registers alone take 11 KB

}  // namespace

void StopSignals::handle(int signal, void (*handler)(int)) {
  struct sigaction before = {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
  actions_before_.emplace_back(signal, before);
}

StopSignals::StopSignals() {
  stop_signal = 0;
  save_asked = false;
  stack_ = std::make_unique<char[]>(kStackBytes);
  stack_t stack = {};
  stack.ss_sp = stack_.get();
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, &stack_before_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal, on_stop_signal);
  handle(SIGUSR1, on_save_signal);
  handle(SIGPIPE, SIG_IGN);
  sigset_t save = {};
  sigemptyset(&save);
  sigaddset(&save, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &save, &mask_before_);
}

StopSignals::~StopSignals() {
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  for (const auto& [signal, action] : actions_before_) sigaction(signal, &action, nullptr);
  sigaltstack(&stack_before_, nullptr);
}

int StopSignals::stop_code() const { return stop_signal == 0 ? 0 : 128 + stop_signal; }
bool StopSignals::save_requested() const { return save_asked; }
bool StopSignals::take_save_request() { return save_asked.exchange(false); }

}  // namespace rondo
