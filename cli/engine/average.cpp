// rondo average: averages the weights of several checkpoints or models into one model file.
#include "rondo/train/average.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/text.h"

namespace rondo::cli {

void run_average(const AverageOptions& options) {
  start_engine();
  const bool run = options.models.size() == 1 && std::filesystem::is_directory(options.models[0]);
  const Verify verify = verify_as(options.load);
  const AveragedModel averaged = run ? average_checkpoints(options.models[0], options.last, verify)
                                     : average_models(options.models, verify);
  save_model(options.output, averaged.config, *averaged.network, averaged.metadata);
  fmt::print("{}: mean of {}\n", options.output,
             counted(averaged.count, run ? "checkpoint" : "model"));
}

}  // namespace rondo::cli
