// All-or-nothing appends: a line cut short by a full disk would corrupt the next one. Nothing is
// thrown, because logs are a convenience; the caller decides whether to report the failure.
#pragma once

#include <string>
#include <string_view>

namespace rondo {

// Appends `text` to the file behind `descriptor`. Returns 0, or errno after rolling back a partial
// write.
int append_whole(int descriptor, std::string_view text);

// The same for a path; creates the file if it does not exist.
int append_whole(const std::string& path, std::string_view text);

}  // namespace rondo
