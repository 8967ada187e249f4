// Child processes that end with us: started with their output in a file, polled, asked to stop.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rondo {

struct ChildOptions {
  std::vector<std::string> arguments;  // the program first, as a path
  std::string output;                  // file for standard output; "" = the log
  std::string log;   // file that standard error is appended to; "" = both are ours
  int niceness = 0;  // added to ours
  std::vector<std::string> environment = {};  // "NAME=VALUE", before ours
};

// Not thread-safe: start and poll from one thread, the one that lives as long as the children: the
// system asks them to stop (SIGTERM) when that thread ends, even by kill -9.
class ChildProcess {
 public:
  // Error{io} if the files cannot be opened, Error{failure} if the program cannot be started.
  explicit ChildProcess(const ChildOptions& options);
  ~ChildProcess();  // kills a child that is still running, and waits for it
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit code once it has ended, 128 + signal if a signal ended it; nothing before.
  std::optional<int> poll();
  void send(int signal) const;

 private:
  pid_t pid_ = -1;  // -1: none, or already waited for
  std::optional<int> code_;
};

// The path of the running program.
std::string own_program();

}  // namespace rondo
