// Training a language model on documents: each batch row processes a document in segments, carrying
// its state and cache from batch to batch.
#pragma once

#include "rondo/config/trained_files.h"
#include "rondo/train/language_score.h"
#include "rondo/train/task.h"

namespace rondo {

class LanguageTask : public Task {
 public:
  // Opens the data and builds the model, its weights initialized from the seed. `cache_folder`: for
  // tokenized documents. Error{bad_input} if vocabulary and tokenizer do not match or no training
  // data is given. With a `group`, train.batch is the number of rows per process: together the
  // processes consume what one process with all of their rows would.
  LanguageTask(const RunConfig& config, const std::string& cache_folder,
               ProcessGroup* group = nullptr);

  Network& network() override { return *model_; }
  LossSum next_loss() override;
  void forget_last() override;
  void keep_files(const std::string& run) const override { keep_tokenizers(run, config_); }
  double units_per_batch() const override;
  const char* unit() const override { return "tokens"; }
  std::optional<Evaluation> evaluate(const StopCheck& stop) override;
  // Recurrent models: mean gate, norm and effective rank of the state, and the contribution of the
  // state: loss without it minus loss with it.
  Metrics probe() override;

  std::string data_checksum() const override { return train_->checksum(); }
  std::string position() const override { return reader_.position(); }
  NamedTensors carried() const override { return state_.tensors(); }
  void restore(const std::string& position, const NamedTensors& carried, bool other_rows) override;

  const Documents& documents() const { return *train_; }

 private:
  RunConfig config_;
  ProcessGroup* group_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Documents> train_;
  std::unique_ptr<Documents> valid_;
  SegmentReader reader_;
  std::shared_ptr<LanguageModel> model_;
  SegmentBatch batch_;
  State state_;
  State state_before_;  // before the last batch
  int64_t unused_probes_ = 0;
};

// exp of the entropy of the normalized singular values, averaged over the batch: the number of
// directions that a state [B, S, D] effectively uses.
double effective_rank(const Tensor& state);

}  // namespace rondo
