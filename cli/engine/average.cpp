// rondo average: the mean of the weights of several checkpoints or models, as one model file.
#include <fmt/format.h>

#include <filesystem>

#include "cli/engine/session.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/model/network.h"
#include "rondo/train/run_folder.h"

namespace rondo::cli {
namespace {

// Sums of tensors by name; whole-number buffers are those of the last one added.
class Mean {
 public:
  void add(const NamedTensors& weights, const std::string& name) {
    if (count_ > 0 && weights.size() != sums_.size()) refuse(name);
    for (const auto& [key, tensor] : weights) {
      const auto found = sums_.find(key);
      if (count_ > 0 && (found == sums_.end() || found->second.sizes() != tensor.sizes())) {
        refuse(name);
      }
      if (!tensor.is_floating_point()) {
        sums_[key] = tensor.clone();
      } else {
        sums_[key] = count_ == 0 ? tensor.to(at::kDouble) : found->second + tensor;
      }
    }
    ++count_;
  }
  void give(const NamedTensors& to) const {
    const at::NoGradGuard no_grad;
    for (const auto& [key, tensor] : to) {
      Tensor target = tensor;
      const Tensor& sum = sums_.at(key);
      target.copy_(sum.is_floating_point() ? sum / static_cast<double>(count_) : sum);
    }
  }
  int64_t count() const { return count_; }

 private:
  [[noreturn]] static void refuse(const std::string& name) {
    throw Error(ExitCode::bad_input, fmt::format("{}: is another model than those before it", name),
                "only models of one configuration can be averaged");
  }
  NamedTensors sums_;
  int64_t count_ = 0;
};

// What is averaged: one configuration, and of image networks their classes and preparation.
struct Averaged {
  ModelConfig config;
  ClassNames classes;
  AugmentConfig augment;
};

Averaged add_checkpoints(const std::string& run, int64_t last, Mean& mean) {
  Averaged averaged;
  const RunConfig experiment = read_run_folder(run);
  averaged.config = experiment.model;
  averaged.augment = experiment.augment;
  const std::string classes = kept_classes_path(run);
  if (exists(classes)) averaged.classes = read_class_names(classes);
  const CheckpointFolder folder(run + "/checkpoints");
  std::vector<int64_t> steps = folder.steps();
  if (steps.empty()) throw Error(ExitCode::bad_input, fmt::format("{}: has no checkpoints", run));
  if (last > static_cast<int64_t>(steps.size())) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected {} checkpoints, got {}", run, last, steps.size()),
                "train with train.keep as large as that");
  }
  if (last > 0) steps.erase(steps.begin(), steps.end() - last);
  for (const int64_t step : steps) {
    const NamedTensors weights = load_checkpoint(folder.path(step)).below("weight.");
    for (const auto& [name, tensor] : weights) require_finite(tensor, name, folder.path(step));
    mean.add(weights, folder.path(step));
  }
  return averaged;
}

Averaged add_models(const std::vector<std::string>& models, Verify verify, Mean& mean) {
  Averaged averaged;
  for (size_t i = 0; i < models.size(); ++i) {
    const TrainedFiles files = find_trained(models[i]);
    const auto network = build_network(files.model);
    load_weights(*network, SafetensorsFile::open(files.weights), verify);
    if (i == 0) averaged = {files.model, files.classes, files.augment};
    if (dump_model_config(files.model) != dump_model_config(averaged.config)) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: has another configuration than {}", models[i], models[0]),
                  "only models of one configuration can be averaged");
    }
    mean.add(named_tensors(*network), models[i]);
  }
  return averaged;
}

}  // namespace
}  // namespace rondo::cli

void rondo_engine_average(const rondo::cli::AverageOptions& options) {
  using namespace rondo;
  cli::start_engine();
  cli::Mean mean;
  const at::NoGradGuard no_grad;
  const bool run = options.models.size() == 1 && std::filesystem::is_directory(options.models[0]);
  const cli::Averaged averaged =
      run ? cli::add_checkpoints(options.models[0], options.last, mean)
          : cli::add_models(options.models, cli::verify_as(options.load), mean);
  const auto network = build_network(averaged.config);
  mean.give(named_tensors(*network));
  std::map<std::string, std::string> metadata;
  if (std::string("image") == averaged.config.task()) {
    metadata = image_metadata(averaged.augment, averaged.classes);
  }
  save_model(options.output, averaged.config, *network, metadata);
  fmt::print("{}: the mean of {} {}\n", options.output, mean.count(),
             run ? "checkpoints" : "models");
}
