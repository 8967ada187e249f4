// Error handling: one exception type for user errors, one assertion for bugs.
//
// Error is for problems a user can cause or fix: a bad flag, a corrupt file, a full disk. If
// nothing handles it, the command prints what() and exits with code() (cli/failure.cpp).
// RONDO_ASSERT is for our own bugs: it prints the violated condition and aborts, in release builds
// too, because a silently wrong result costs more than the check.
#pragma once

#include <exception>
#include <string>

namespace rondo {

// Exit codes of the command; scripts may rely on these values.
enum class ExitCode : int {
  ok = 0,
  failure = 1,    // anything not listed below
  usage = 2,      // the command line is invalid
  bad_input = 3,  // a model, data or config file is invalid
  io = 4,         // a read or write failed, or the disk is full
  diverged = 5,   // the training loss became non-finite
  busy = 6,       // another process is using this run
  group = 7,      // a process of the group was lost, or the group could not be formed
};

class Error : public std::exception {
 public:
  // `message` states what went wrong, where, what was expected and what was found, without a final
  // period; `advice` tells the user what to do and may be empty.
  Error(ExitCode code, std::string message, std::string advice = {});

  ExitCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& advice() const { return advice_; }

  // The message, followed by "\n  advice" if there is any. Valid for the lifetime of this object.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
  std::string advice_;
  std::string text_;  // built once, so that what() cannot throw
};

// Prints the expression and its location to stderr and aborts. Called by RONDO_ASSERT only.
[[noreturn]] void assert_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace rondo

// Aborts unless `cond` holds. Active in all builds; evaluates `cond` exactly once.
#define RONDO_ASSERT(cond) \
  (static_cast<bool>(cond) ? void(0) : ::rondo::assert_failed(#cond, __FILE__, __LINE__))
