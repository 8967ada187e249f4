// Measures the time and memory that a run will take.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "rondo/nn/allocator.h"
#include "rondo/train/optimizer.h"
#include "rondo/train/step.h"
#include "rondo/train/trainer.h"

namespace rondo {

DryRun dry_run(Task& task, const RunConfig& config, int64_t steps) {
  nn::watch_memory();
  prepare_network(task.network(), config.train);
  const auto optimizer = make_optimizer(config.optimizer, task.network());
  const NamedTensors average = first_average(task.network(), config.train);
  std::vector<double> seconds;
  for (int64_t number = 1; number <= steps; ++number) {
    const auto started = std::chrono::steady_clock::now();
    compute_gradients(task, config.train, number);
    optimizer->step(number, 0.0);
    const auto now = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(now - started).count());
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  // The first step allocates memory that later ones reuse: the fastest step is representative.
  return {*std::min_element(seconds.begin(), seconds.end()), int64_t{usage.ru_maxrss} * 1024,
          static_cast<int64_t>(nn::memory_use().watched)};
}

}  // namespace rondo
