// Argument checks at public entry points, once per call: sizes, row counts, ids. For internal
// invariants use RONDO_ASSERT.
#pragma once

#include <fmt/core.h>

#include <utility>

#include "rondo/base/error.h"

namespace rondo {

// Throws Error{bad_input} with the message unless `holds`. The message states where, what was
// expected and what was given; it is formatted only on failure.
template <class... Values>
void require(bool holds, fmt::format_string<Values...> message, Values&&... values) {
  if (holds) return;
  throw Error(ExitCode::bad_input, fmt::format(message, std::forward<Values>(values)...));
}

}  // namespace rondo
