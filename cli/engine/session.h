// What every verb of the engine does first: threads.
#pragma once

#include <cstdint>

namespace rondo::cli {

// Sets torch's threads: `threads`, or one per core when 0 (Debian's libtorch comes up with one).
void start_engine(int64_t threads = 0);

}  // namespace rondo::cli
