// Exceptions as the command reports them.
#include "cli/failure.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>
#include <system_error>

#include "rondo/base/memory_limit.h"

namespace rondo::cli {
namespace {

// An exception that is not an Error. Running out of memory is for the user to fix; anything else is
// a bug in Rondo, and only the first line of its text is the message; the rest is a trace.
std::string unexpected_failure(const std::exception& error) {
  const std::string text = error.what();
  const size_t asked = text.find("you tried to allocate");  // libtorch's own allocator
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr || asked != std::string::npos ||
      text.find("Storage size calculation overflowed") != std::string::npos) {
    const std::string bytes =
        asked == std::string::npos ? "" : ": " + text.substr(asked, text.find('.', asked) - asked);
    return fmt::format("out of memory{}{}\n  choose a smaller model, batch or sequence", bytes,
                       named_limits());
  }
  return fmt::format("internal error: {}\n  please report it with the command you ran",
                     text.substr(0, text.find('\n')));
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::system_error& error) {  // fmt could not write to standard output
    return {ExitCode::io, error.what()};
  } catch (const std::exception& error) {
    return {ExitCode::failure, unexpected_failure(error)};
  }
}

}  // namespace rondo::cli
