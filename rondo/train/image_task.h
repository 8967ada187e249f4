// Training an image network on labeled images, with or without a teacher.
#pragma once

#include "rondo/image/pipeline.h"
#include "rondo/infer/image_runner.h"
#include "rondo/train/task.h"

namespace rondo {

// Opens a set for a network with `classes` classes. Error{bad_input} if the set has more, or if its
// classes differ from those of `like` (unless null); `key` names the setting ("data.valid").
std::unique_ptr<ImageSet> open_labeled_images(const std::string& spec, const std::string& key,
                                              int64_t classes, const ImageSet* like);

class ImageTask : public Task {
 public:
  // Opens data and teacher and builds the network. Error{bad_input} if they do not fit together or
  // no training data is given. The processes of a `group` take turns with the batches.
  explicit ImageTask(const RunConfig& config, ProcessGroup* group = nullptr);

  Network& network() override { return *network_; }
  // Image preprocessing and class names.
  std::map<std::string, std::string> metadata() const override;
  // Mean cross-entropy with the batch's target distributions (label, smoothing, mixup) or the
  // teacher's; with mixed depth, the mean of both passes.
  LossSum next_loss() override;
  // Restores the batch norms' statistics from before the last batch.
  void forget_last() override;
  void keep_files(const std::string& run) const override { keep_class_names(run, class_names()); }
  double units_per_batch() const override { return static_cast<double>(config_.train.batch); }
  const char* unit() const override { return "images"; }
  // Loss, accuracy and top-5 accuracy on the validation images; selects by accuracy.
  std::optional<Evaluation> evaluate(const StopCheck& stop) override;

  std::string data_checksum() const override { return train_->checksum(); }
  std::string position() const override { return loader_->position(); }
  NamedTensors carried() const override { return {}; }
  void restore(const std::string& position, const NamedTensors& carried, bool other_rows) override;

  ClassNames class_names() const;

 private:
  Tensor targets() const;                             // [B, classes]
  Tensor teacher_logits(const Tensor& images) const;  // [B, classes]
  Tensor loss_of(const Tensor& logits, const Tensor& targets, const Tensor& teacher) const;

  RunConfig config_;
  ProcessGroup* group_;
  std::unique_ptr<ImageSet> train_;
  std::unique_ptr<ImageSet> valid_;
  std::unique_ptr<ImageModel> teacher_;
  std::unique_ptr<ImageRunner> teacher_runner_;
  std::unique_ptr<ImageLoader> loader_;
  ImageBatch batch_;
  std::shared_ptr<Network> network_;
  NamedTensors before_;  // buffers before the last batch
};

}  // namespace rondo
