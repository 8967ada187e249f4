// The mean of the weights of several checkpoints or models.
#include "rondo/train/average.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/config/exported_model.h"
#include "rondo/train/run_folder.h"

namespace rondo {
namespace {

// Sums of tensors by name; integer buffers are those of the last model added.
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
    throw Error(ExitCode::bad_input,
                fmt::format("{}: is not the same model as those before it", name),
                "only models with the same configuration can be averaged");
  }
  NamedTensors sums_;
  int64_t count_ = 0;
};

// The mean, with the tokenizers of the model `like`, or its classes and image preprocessing.
AveragedModel model_of(const TrainedFiles& like, const Mean& mean) {
  AveragedModel averaged = {like.model, build_network(like.model), {}, mean.count()};
  mean.give(named_tensors(*averaged.network));
  if (std::string("image") == like.model.task()) {
    averaged.metadata = image_metadata(like.augment, like.classes);
  }
  if (like.run.has_value()) averaged.metadata.merge(experiment_metadata(*like.run, true));
  return averaged;
}

}  // namespace

AveragedModel average_checkpoints(const std::string& run, int64_t last, Verify verify) {
  const at::NoGradGuard no_grad;
  read_run_folder(run);  // throws if it is not a run folder
  const CheckpointFolder folder(run + "/checkpoints");
  std::vector<int64_t> steps = folder.steps();
  if (steps.empty()) throw Error(ExitCode::bad_input, fmt::format("{}: has no checkpoints", run));
  if (last < 0 || last > static_cast<int64_t>(steps.size())) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected {} checkpoints, got {}", run, last, steps.size()),
                "train with train.keep at least that large");
  }
  if (last > 0) steps.erase(steps.begin(), steps.end() - last);
  Mean mean;
  for (const int64_t step : steps) {
    const NamedTensors weights = load_checkpoint(folder.path(step), verify).below("weight.");
    for (const auto& [name, tensor] : weights) require_finite(tensor, name, folder.path(step));
    mean.add(weights, folder.path(step));
  }
  return model_of(find_trained(folder.path(steps.back())), mean);
}

AveragedModel average_models(const std::vector<std::string>& models, Verify verify) {
  if (models.empty()) throw Error(ExitCode::bad_input, "average: no models are given");
  const at::NoGradGuard no_grad;
  const TrainedFiles first = find_trained(models[0]);
  Mean mean;
  for (const std::string& model : models) {
    const TrainedFiles files = find_trained(model);
    if (dump_model_config(files.model) != dump_model_config(first.model)) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: its configuration differs from that of {}", model, models[0]),
                  "only models with the same configuration can be averaged");
    }
    const auto network = build_network(files.model);
    load_weights(*network, SafetensorsFile::open(files.weights), verify);
    mean.add(named_tensors(*network), model);
  }
  return model_of(first, mean);
}

}  // namespace rondo
