// Child processes that do not outlive us: started with output to a file, polled, signaled.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rondo {

struct ChildOptions {
  std::vector<std::string> arguments;  // the program first, as a path
  std::string output;                  // file for standard output; "" = the log
  std::string log;                     // file that standard error is appended to; "" = inherit both
  int niceness = 0;                    // added to ours
  std::vector<std::string> environment = {};  // "NAME=VALUE"; overrides ours
};

// Not thread-safe: start and poll from one thread that outlives the children. The kernel sends them
// SIGTERM when that thread ends, even by kill -9.
class ChildProcess {
 public:
  // Throws Error{io} if a file cannot be opened, Error{failure} if the program cannot be started.
  explicit ChildProcess(const ChildOptions& options);
  ~ChildProcess();  // kills and reaps a child that is still running
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit code, or 128 + signal if killed by one; nullopt while running.
  std::optional<int> poll();
  void send(int signal) const;

 private:
  pid_t pid_ = -1;  // -1: none, or already reaped
  std::optional<int> code_;
};

// The path of the running program.
std::string own_program();

}  // namespace rondo
