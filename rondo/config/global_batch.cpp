// Dividing a global batch among processes.
#include "rondo/config/global_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/error.h"

namespace rondo {

RunConfig share_of_batch(RunConfig config, int64_t processes) {
  TrainConfig& train = config.train;
  if (train.global_batch == 0) return config;
  const auto refuse = [&](const std::string& expected) {
    throw Error(ExitCode::bad_input,
                fmt::format("train.global_batch: {}, got {}", expected, train.global_batch),
                "choose another number of processes, train.batch or train.global_batch");
  };
  if (train.accumulate != 1) {
    throw Error(
        ExitCode::bad_input,
        "train.accumulate: is derived from the number of processes if train.global_batch is set",
        "leave train.accumulate at 1");
  }
  if (train.global_batch % processes != 0) {
    refuse(fmt::format("expected a multiple of the {} processes", processes));
  }
  const int64_t rows = train.global_batch / processes;
  if (std::string_view(config.model.task()) != "translation") {
    train.batch = std::min(train.batch, rows);
  }
  if (rows % train.batch != 0) {
    refuse(fmt::format("expected a multiple of {} processes times train.batch = {}", processes,
                       train.batch));
  }
  train.accumulate = rows / train.batch;
  return config;
}

}  // namespace rondo
