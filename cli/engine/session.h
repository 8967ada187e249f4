// What verbs of the engine share: threads at the start, the cache folder, text from a file or
// stdin.
#pragma once

#include <cstdint>
#include <string>

namespace rondo::cli {

// Sets torch's threads: `threads`, or one per core when 0 (Debian's libtorch comes up with one).
void start_engine(int64_t threads = 0);

// `given`, or the user's cache: $XDG_CACHE_HOME/rondo, ~/.cache/rondo.
std::string cache_folder(const std::string& given);

// The whole text of a file (plain, .gz, .zst), or of stdin for "-".
std::string read_document(const std::string& path);

}  // namespace rondo::cli
