// How Rondo fails: one exception type for the user, one assertion for the programmer.
//
// Error is for what a user can cause or cure: a bad flag, a broken file, a full disk. Only
// cli/main.cpp catches it; it prints what() and leaves with code(). RONDO_ASSERT is for what only
// we can cause: it names the broken promise and aborts, in release builds too, because a wrong
// number computed quietly costs more than the check.
#pragma once

#include <exception>
#include <string>

namespace rondo {

// The exit status of the command line; scripts may rely on these numbers.
enum class ExitCode : int {
  ok = 0,
  failure = 1,    // anything not named below
  usage = 2,      // the command line itself is wrong
  bad_input = 3,  // a model, data or config file is wrong
  io = 4,         // the system refused to read or write, or the disk is full
  diverged = 5,   // training produced a loss that is not finite
  busy = 6,       // another process already works on this run
  group = 7,      // a process of the group was lost, or the group could not be formed
};

class Error : public std::exception {
 public:
  // `message` says what went wrong, where, what was expected and what was found, with no final
  // full stop; `advice` says what the user can do about it and may be empty.
  Error(ExitCode code, std::string message, std::string advice = {});

  ExitCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& advice() const { return advice_; }

  // The message, then "\n  advice" when there is advice. Valid as long as this object lives.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
  std::string advice_;
  std::string text_;  // built once, so that what() cannot throw
};

// Prints the expression and its place on stderr and aborts. Called by RONDO_ASSERT only.
[[noreturn]] void assert_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace rondo

// Aborts unless `cond` holds. Active in all builds; evaluates `cond` exactly once.
#define RONDO_ASSERT(cond) \
  (static_cast<bool>(cond) ? void(0) : ::rondo::assert_failed(#cond, __FILE__, __LINE__))
