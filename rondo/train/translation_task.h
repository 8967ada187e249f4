// Training a translation model on sentence pairs, in batches of similar lengths.
#pragma once

#include "rondo/config/trained_files.h"
#include "rondo/data/pair_batches.h"
#include "rondo/data/pair_tokenizers.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/train/task.h"

namespace rondo {

// A batch as tensors on a device: source [B, S], target and labels [B, T].
struct PairTensors {
  explicit PairTensors(const PairBatch& batch, at::Device device = at::kCPU);
  Tensor source, target, labels;
};

class TranslationTask : public Task {
 public:
  // Opens the data and builds the model, its weights initialized from the seed. `cache_folder`: for
  // tokenized pairs. Error{bad_input} if tokenizers and model do not match or no training data is
  // given. The processes of a `group` take turns with the batches.
  TranslationTask(const RunConfig& config, const std::string& cache_folder,
                  ProcessGroup* group = nullptr);

  Network& network() override { return *model_; }
  LossSum next_loss() override;
  void forget_last() override {}  // nothing is carried between batches
  void keep_files(const std::string& run) const override { keep_tokenizers(run, config_); }
  double units_per_batch() const override;
  const char* unit() const override { return "sentences"; }
  // Mean loss per target token on the validation pairs, without label smoothing, and perplexity.
  std::optional<Evaluation> evaluate(const StopCheck& stop) override;

  std::string data_checksum() const override { return train_->fingerprint(); }
  std::string position() const override { return batches_.position(); }
  NamedTensors carried() const override { return {}; }
  void restore(const std::string& position, const NamedTensors& carried, bool other_rows) override;

  const ParallelCorpus& pairs() const { return *train_; }
  int64_t last_rows() const { return batch_.rows; }  // pairs of the last batch

 private:
  RunConfig config_;
  ProcessGroup* group_;
  PairTokenizers tokenizers_;
  std::unique_ptr<ParallelCorpus> train_;
  std::unique_ptr<ParallelCorpus> valid_;
  PairBatches batches_;
  PairBatch batch_;
  std::shared_ptr<EncoderDecoder> model_;
};

}  // namespace rondo
