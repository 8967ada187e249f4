// Adding to the end of a file so that what is added is there whole or not at all: a line that a
// full disk cut short would spoil the one after it. Nothing is thrown: logs are a convenience, and
// the caller decides what to say.
#pragma once

#include <string>
#include <string_view>

namespace rondo {

// Adds `text` to the file behind `descriptor`. Returns 0, or the system's errno after taking back
// what was written of it.
int append_whole(int descriptor, std::string_view text);

// The same for a path, which is made if it is not there.
int append_whole(const std::string& path, std::string_view text);

}  // namespace rondo
