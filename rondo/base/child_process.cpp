// fork, redirect, exec.
#include "rondo/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

#include "rondo/base/error.h"

namespace rondo {
namespace {

constexpr int kCannotStart = 127;

int open_for_child(const std::string& path, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file >= 0) return file;
  throw Error(ExitCode::io, fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
}

// Runs in the child: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int log,
                         int niceness, pid_t parent) {
  // Its own process group: Ctrl-C reaches only us, and we signal the child once.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);  // the parent died before prctl
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  if (log >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  if (niceness != 0 && nice(niceness) == -1) errno = 0;
  execve(arguments[0], arguments, environment);
  _exit(kCannotStart);
}

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options) {
  const int log = options.log.empty() ? -1 : open_for_child(options.log, O_APPEND);
  int output = log;
  if (!options.output.empty()) {
    try {
      output = open_for_child(options.output, O_TRUNC);
    } catch (...) {
      if (log >= 0) close(log);
      throw;
    }
  }
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    return all;
  };
  std::vector<char*> arguments = pointers(options.arguments);
  arguments.push_back(nullptr);
  std::vector<char*> environment = pointers(options.environment);  // the first of a name wins
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    become(arguments.data(), environment.data(), output, log, options.niceness, parent);
  }
  const int error = errno;
  if (log >= 0) close(log);
  if (output != log) close(output);
  if (pid_ < 0) {
    throw Error(ExitCode::failure, fmt::format("{}: cannot start: {}", options.arguments.front(),
                                               std::strerror(error)));
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(code_, other.code_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::poll() {
  if (pid_ < 0) return code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

void ChildProcess::send(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::string own_program() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  return {path, length > 0 ? static_cast<size_t>(length) : 0};
}

}  // namespace rondo
