// Starting torch.
#include "cli/engine/session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

namespace rondo::cli {

void start_engine(int64_t threads) {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : std::max<int64_t>(1, cores)));
}

}  // namespace rondo::cli
