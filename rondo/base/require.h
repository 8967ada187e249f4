// Checks of what a caller of the library hands over: sizes, numbers of rows, ids. They belong at
// public entry points, once per call; what only we can get wrong is RONDO_ASSERT.
#pragma once

#include <fmt/core.h>

#include <utility>

#include "rondo/base/error.h"

namespace rondo {

// Error{bad_input} with the formatted message unless `holds`. The message says where, what was
// expected and what was given; it is formatted only when it is needed.
template <class... Values>
void require(bool holds, fmt::format_string<Values...> message, Values&&... values) {
  if (holds) return;
  throw Error(ExitCode::bad_input, fmt::format(message, std::forward<Values>(values)...));
}

}  // namespace rondo
