// The image task.
#include "rondo/train/image_task.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/model/vision.h"
#include "rondo/nn/loss.h"
#include "rondo/train/device.h"
#include "rondo/train/image_score.h"
#include "rondo/train/start.h"

namespace rondo {
namespace {

LoaderOptions training_loader(const RunConfig& config, const Shard& shard) {
  LoaderOptions o;
  o.shard = shard;
  o.rows = config.train.batch;
  o.side = image_side(config.model);
  o.seed = static_cast<uint64_t>(config.train.seed);
  o.strict = config.images.strict;
  o.threads = config.images.threads;
  return o;
}

std::unique_ptr<ImageModel> load_teacher(const RunConfig& config) {
  if (config.distill.teacher.empty()) return nullptr;
  if (config.distill.teacher == "TEACHER") {
    throw Error(ExitCode::bad_input, "distill.teacher: this recipe needs a teacher",
                "--set distill.teacher=RUN, a run or model file of the same classes");
  }
  auto teacher = std::make_unique<ImageModel>(load_image_model(config.distill.teacher));
  const int64_t expected = image_classes(config.model);
  if (image_classes(teacher->config) != expected) {
    throw Error(ExitCode::bad_input,
                fmt::format("distill.teacher: {}: expected {} classes as in model.classes, got {}",
                            config.distill.teacher, expected, image_classes(teacher->config)),
                "teacher and student must have the same classes");
  }
  return teacher;
}

// Converts normalized images from one network's mean and std to another's.
Tensor renormalized(const Tensor& images, const AugmentConfig& from, const AugmentConfig& to) {
  if (from.mean == to.mean && from.std == to.std) return images;
  const auto channels = [](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble).to(at::kFloat).view({1, 3, 1, 1});
  };
  const Tensor scale = channels(from.std) / channels(to.std);
  return images * scale + (channels(from.mean) - channels(to.mean)) / channels(to.std);
}

}  // namespace

std::unique_ptr<ImageSet> open_labeled_images(const std::string& spec, const std::string& key,
                                              int64_t classes, const ImageSet* like) {
  auto images = open_images(spec);
  const auto found = static_cast<int64_t>(images->classes().size());
  if (found > classes) {
    throw Error(ExitCode::bad_input,
                fmt::format("model.classes: expected at least {}, the classes of {} ({}), got {}",
                            found, key, spec, classes),
                fmt::format("--set model.classes={}", found));
  }
  if (like != nullptr && images->classes() != like->classes()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: the classes of {} differ from those of data.train", key, spec),
                "labels index the sorted class names: both sets need the same names");
  }
  return images;
}

ImageTask::ImageTask(const RunConfig& config, ProcessGroup* group)
    : config_(config), group_(group) {
  const int64_t classes = image_classes(config.model);
  if (config.images.train.empty()) {
    throw Error(ExitCode::bad_input, "data.train: missing",
                "specify the images: --set data.train=FOLDER, with a subfolder per class");
  }
  train_ = open_labeled_images(config.images.train, "data.train", classes, nullptr);
  if (const auto found = static_cast<int64_t>(train_->classes().size()); found < classes) {
    log_warn("the network has {} classes, the data {}: set model.classes={} unless this is meant",
             classes, found, found);
  }
  if (!config.images.valid.empty()) {
    valid_ = open_labeled_images(config.images.valid, "data.valid", classes, train_.get());
  }
  teacher_ = load_teacher(config);
  if (teacher_ != nullptr) teacher_runner_ = std::make_unique<ImageRunner>(teacher_->network);
  network_ = build_network(config.model);
  start_weights(*network_, config.train);
  network_->to(training_device(config.train, group));
  loader_ = std::make_unique<ImageLoader>(*train_, config.augment,
                                          training_loader(config, shard_of(group)));
}

std::map<std::string, std::string> ImageTask::metadata() const {
  return image_metadata(config_.augment, class_names());
}

Tensor ImageTask::targets() const {
  const int64_t classes = image_classes(config_.model);
  const std::vector<float> rows =
      mixed_targets(batch_.labels, batch_.mix.mixed ? batch_.mix.lambda : 1.0, classes,
                    config_.train.label_smoothing);
  return at::from_blob(const_cast<float*>(rows.data()), {batch_.rows, classes}, at::kFloat).clone();
}

Tensor ImageTask::teacher_logits(const Tensor& images) const {
  const at::NoGradGuard no_grad;
  Tensor x = renormalized(images, config_.augment, teacher_->augment);
  const int64_t side = image_side(teacher_->config);
  if (side != x.size(2)) x = at::upsample_bicubic2d(x, {side, side}, /*align_corners=*/false);
  return teacher_runner_->forward(x);
}

Tensor ImageTask::loss_of(const Tensor& logits, const Tensor& targets,
                          const Tensor& teacher) const {
  if (!teacher.defined()) return nn::soft_cross_entropy(logits, targets);
  if (config_.distill.kind == "soft") return nn::soft_distillation(logits, teacher);
  const Tensor choice = at::one_hot(teacher.argmax(1), logits.size(1)).to(at::kFloat);
  return nn::soft_cross_entropy(logits, (targets + choice) / 2.0);
}

LossSum ImageTask::next_loss() {
  loader_->next(batch_);
  before_.clear();
  for (const auto& item : network_->named_buffers()) before_[item.key()] = item.value().clone();
  // Uses the batch's own memory, which is refilled only after the backward pass.
  const Tensor images =
      at::from_blob(batch_.pixels.data(), {batch_.rows, 3, batch_.side, batch_.side}, at::kFloat);
  const at::Device device = network_->device();
  const Tensor teacher = teacher_ != nullptr ? teacher_logits(images).to(device) : Tensor();
  const Tensor wanted = targets().to(device);
  State state;
  const NamedTensors outputs = network_->forward({{"images", images.to(device)}}, state, Scope());
  LossSum loss;
  loss.count = batch_.rows;
  loss.sum =
      image_loss(outputs, [&](const Tensor& logits) { return loss_of(logits, wanted, teacher); });
  return loss;
}

void ImageTask::forget_last() {
  const at::NoGradGuard no_grad;
  for (auto& item : network_->named_buffers()) item.value().copy_(before_.at(item.key()));
}

std::optional<Task::Evaluation> ImageTask::evaluate(const StopCheck& stop) {
  if (valid_ == nullptr) return std::nullopt;
  ImageScoreOptions o;
  o.side = image_side(config_.model);
  o.rows = config_.train.batch;
  o.threads = config_.images.threads;
  o.max_images = config_.train.eval_tokens;
  o.strict = config_.images.strict;
  o.stop = stop;
  o.shard = shard_of(group_);
  ImageScore score = score_images(network_, *valid_, config_.augment, o);
  std::vector<double> sums = {static_cast<double>(score.images), static_cast<double>(score.first),
                              static_cast<double>(score.among_five), score.nats};
  sum_over(group_, sums);
  score.images = static_cast<int64_t>(sums[0]);
  score.first = static_cast<int64_t>(sums[1]);
  score.among_five = static_cast<int64_t>(sums[2]);
  score.nats = sums[3];
  Evaluation e;
  e.metrics["valid_loss"] = score.loss();
  e.metrics["valid_accuracy"] = score.accuracy();
  e.metrics["valid_top_five"] = score.top_five();
  e.selection = 100.0 - score.accuracy();
  return e;
}

void ImageTask::restore(const std::string& position, const NamedTensors& /*carried*/,
                        bool other_rows) {
  loader_->seek(position, other_rows);
}

ClassNames ImageTask::class_names() const { return {train_->classes(), train_->titles()}; }

}  // namespace rondo
