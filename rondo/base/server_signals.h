// SIGTERM and SIGINT of a server, received by a thread of its own: a handler will not do, because
// oneDNN's matmul kernels repurpose the stack pointer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace rondo {

// Blocks SIGTERM and SIGINT in this thread and those started later: they stay pending until a
// ServerSignals exists. Ignores SIGPIPE.
void block_server_signals();

// Call block_server_signals() first, before any other thread is started.
class ServerSignals {
 public:
  // Until hold(), a signal ends the process immediately with exit code 0.
  ServerSignals();
  ~ServerSignals();
  ServerSignals(const ServerSignals&) = delete;
  ServerSignals& operator=(const ServerSignals&) = delete;

  // `leave` runs on the thread of the signals before the process ends: there is now something to
  // clean up.
  void before_exit(std::function<void()> leave);
  // From now on signals only end wait().
  void hold();
  // Waits up to `seconds`. Returns whether a signal arrived, each once.
  bool wait(double seconds);

 private:
  void receive();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> leave_;
  bool held_ = false;
  bool closing_ = false;
  int arrived_ = 0;  // not yet reported by wait()
  std::thread thread_;
};

}  // namespace rondo
