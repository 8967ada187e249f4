// Training a translation model on sentence pairs, in batches of similar lengths.
#pragma once

#include "rondo/config/trained_files.h"
#include "rondo/data/pair_batches.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/train/task.h"

namespace rondo {

// The tokenizers of both sides; the same one when they share it.
struct PairTokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};
// Error{bad_input} if a side has none, or one that does not fit the model: more tokens than the
// model has rows, another padding, or no mark for the beginning or end.
PairTokenizers open_pair_tokenizers(const PairConfig& data, const EncoderDecoderConfig& model);

// A batch as tensors: source [B, S], target and labels [B, T].
struct PairTensors {
  explicit PairTensors(const PairBatch& batch);
  Tensor source, target, labels;
};

class TranslationTask : public Task {
 public:
  // Opens data and builds the model, its weights drawn from the seed. `cache_folder`: for tokenised
  // pairs. Error{bad_input} if tokenizers and model do not fit or no training data is named.
  TranslationTask(const RunConfig& config, const std::string& cache_folder);

  Network& network() override { return *model_; }
  LossSum next_loss() override;
  void forget_last() override {}  // nothing is carried from batch to batch
  void keep_files(const std::string& run) const override { keep_tokenizers(run, config_); }
  double units_per_batch() const override;
  const char* unit() const override { return "sentences"; }
  // Mean loss per target token of the validation pairs, without smoothing, and its perplexity.
  std::optional<Evaluation> evaluate(const StopCheck& stop) override;

  std::string data_checksum() const override { return train_->fingerprint(); }
  std::string position() const override { return batches_.position(); }
  NamedTensors carried() const override { return {}; }
  void restore(const std::string& position, const NamedTensors& carried) override;

  const ParallelCorpus& pairs() const { return *train_; }
  int64_t last_rows() const { return batch_.rows; }  // pairs of the last batch

 private:
  RunConfig config_;
  PairTokenizers tokenizers_;
  std::unique_ptr<ParallelCorpus> train_;
  std::unique_ptr<ParallelCorpus> valid_;
  PairBatches batches_;
  PairBatch batch_;
  std::shared_ptr<EncoderDecoder> model_;
};

}  // namespace rondo
