// The thread that receives signals.
#include "rondo/base/server_signals.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "rondo/base/error.h"

namespace rondo {
namespace {

sigset_t server_signal_set() {
  sigset_t set = {};
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void block_server_signals() {
  std::signal(SIGPIPE, SIG_IGN);  // the reader of our messages may have exited
  const sigset_t set = server_signal_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

ServerSignals::ServerSignals() : thread_([this] { receive(); }) {}

ServerSignals::~ServerSignals() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGINT);  // blocked in all threads: only ends sigwait()
  thread_.join();
}

void ServerSignals::before_exit(std::function<void()> leave) {
  const std::lock_guard<std::mutex> lock(mutex_);
  leave_ = std::move(leave);
}

void ServerSignals::hold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = true;
  leave_ = nullptr;
}

bool ServerSignals::wait(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool any = changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                     [this] { return arrived_ > 0; });
  if (any) --arrived_;
  return any;
}

void ServerSignals::receive() {
  const sigset_t set = server_signal_set();
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    // The lock is kept while leaving: whoever calls hold() now waits until the process has ended.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return;
    if (!held_) {
      if (leave_) leave_();
      std::fflush(nullptr);
      std::_Exit(static_cast<int>(ExitCode::ok));  // other threads cannot be interrupted
    }
    ++arrived_;
    changed_.notify_all();
  }
}

}  // namespace rondo
