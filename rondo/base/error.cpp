// Out-of-line parts of error.h.
#include "rondo/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rondo {

Error::Error(ExitCode code, std::string message, std::string advice)
    : code_(code), message_(std::move(message)), advice_(std::move(advice)), text_(message_) {
  if (!advice_.empty()) {
    text_.append("\n  ").append(advice_);
  }
}

void assert_failed(const char* expression, const char* file, int line) noexcept {
  // Plain stdio: the logger may be broken too.
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n  this is a bug in rondo; please report it\n",
               file, line, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace rondo
