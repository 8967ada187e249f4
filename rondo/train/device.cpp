// Checking the training device.
#include "rondo/train/device.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include "rondo/base/error.h"

namespace rondo {

at::Device training_device(const TrainConfig& config, const ProcessGroup* group) {
  if (config.device == "cpu") return at::kCPU;
  if (group != nullptr) {
    throw Error(ExitCode::bad_input, "train.device: several processes train on the CPU only",
                "set train.device = \"cpu\", or train with one process");
  }
  if (!at::hasCUDA()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("train.device: {}: this libtorch has no CUDA, or there is no such GPU",
                    config.device),
        "set train.device = \"cpu\", or build against a libtorch with CUDA (docs/scale.md)");
  }
  return at::Device(config.device);
}

}  // namespace rondo
