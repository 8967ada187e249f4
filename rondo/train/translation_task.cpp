// The translation task.
#include "rondo/train/translation_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/train/device.h"
#include "rondo/train/start.h"

namespace rondo {
namespace {

const EncoderDecoderConfig& translation_config(const RunConfig& config) {
  return std::get<EncoderDecoderConfig>(config.model.network);
}

std::unique_ptr<ParallelCorpus> open_pairs(const std::string& spec, const PairConfig& data,
                                           const PairTokenizers& tokenizers,
                                           const std::string& cache) {
  if (spec.empty()) return nullptr;
  ParallelOptions o;
  o.files = find_parallel(spec, data.source, data.target);
  o.cache_folder = cache;
  o.max_tokens = data.max_tokens;
  o.cut = data.cut;
  return std::make_unique<ParallelCorpus>(
      ParallelCorpus::open(o, *tokenizers.source, *tokenizers.target));
}

std::unique_ptr<ParallelCorpus> open_training_pairs(const RunConfig& config,
                                                    const PairTokenizers& tokenizers,
                                                    const std::string& cache) {
  if (config.pairs.train.empty()) {
    throw Error(ExitCode::bad_input, "data.train: missing",
                "specify the sentence pairs: --set data.train=PREFIX for PREFIX.de and PREFIX.en");
  }
  return open_pairs(config.pairs.train, config.pairs, tokenizers, cache);
}

PairBatchOptions batch_options(const RunConfig& config, const PairTokenizers& tokenizers,
                               const Shard& shard) {
  PairBatchOptions o;
  o.shard = shard;
  o.tokens = config.pairs.batch_tokens;
  o.max_rows = config.train.batch;
  o.seed = static_cast<uint64_t>(config.train.seed);
  o.source_padding = tokenizers.source->special_tokens().padding;
  o.target_padding = tokenizers.target->special_tokens().padding;
  o.source_end = tokenizers.source->special_tokens().end;
  o.target_begin = tokenizers.target->special_tokens().begin;
  o.target_end = tokenizers.target->special_tokens().end;
  return o;
}

Tensor batch_tensor(const std::vector<int64_t>& values, int64_t rows, int64_t length,
                    at::Device device) {
  // Cloned: the reader reuses its buffers, autograd keeps the tensors it was given.
  return at::from_blob(const_cast<int64_t*>(values.data()), {rows, length}, at::kLong)
      .clone()
      .to(device);
}

}  // namespace

PairTensors::PairTensors(const PairBatch& batch, at::Device device)
    : source(batch_tensor(batch.source, batch.rows, batch.source_length, device)),
      target(batch_tensor(batch.target, batch.rows, batch.target_length, device)),
      labels(batch_tensor(batch.labels, batch.rows, batch.target_length, device)) {}

TranslationTask::TranslationTask(const RunConfig& config, const std::string& cache_folder,
                                 ProcessGroup* group)
    : config_(config),
      group_(group),
      tokenizers_(open_pair_tokenizers(config.pairs, translation_config(config))),
      train_(open_training_pairs(config, tokenizers_, cache_folder)),
      valid_(open_pairs(config.pairs.valid, config.pairs, tokenizers_, cache_folder)),
      batches_(*train_, batch_options(config, tokenizers_, shard_of(group))),
      model_(std::make_shared<EncoderDecoder>(translation_config(config))) {
  start_weights(*model_, config.train);
  model_->to(training_device(config.train, group));
}

LossSum TranslationTask::next_loss() {
  batches_.next(batch_);
  const PairTensors t(batch_, model_->device());
  State state = model_->encode(t.source, Scope());
  return model_->loss_of_target(t.target, t.labels, state, config_.train.label_smoothing);
}

double TranslationTask::units_per_batch() const {
  return static_cast<double>(train_->count()) /
         static_cast<double>(std::max<int64_t>(1, batches_.batches_per_epoch()));
}

std::optional<Task::Evaluation> TranslationTask::evaluate(const StopCheck& stop) {
  if (valid_ == nullptr) return std::nullopt;
  const at::NoGradGuard no_grad;
  PairBatchOptions o = batch_options(config_, tokenizers_, {});
  o.shuffle = false;
  o.endless = false;
  PairBatches batches(*valid_, o);
  PairBatch batch;
  const Shard shard = shard_of(group_);
  std::vector<double> sums = {0.0, 0.0};  // nats, tokens
  int64_t tokens = 0;                     // of all processes
  int64_t number = 0;
  const int64_t all = valid_->target_tokens() + valid_->count();
  const int64_t most = config_.train.eval_tokens;
  Progress progress("evaluating", most > 0 ? std::min(most, all) : all, loading_progress());
  // All processes of a group have the same batches and take turns computing them.
  for (; (config_.train.eval_tokens == 0 || tokens < config_.train.eval_tokens) &&
         batches.next(batch);
       ++number) {
    if (number % shard.size == 0 && stop && stop()) break;
    tokens += batch.target_tokens;
    progress.update(tokens);
    if (number % shard.size != shard.rank) continue;
    const PairTensors t(batch, model_->device());
    State state = model_->encode(t.source, Scope());
    const LossSum sum = model_->loss_of_target(t.target, t.labels, state);
    sums[0] += sum.sum.item<double>();
    sums[1] += static_cast<double>(sum.count);
  }
  sum_over(group_, sums);
  Evaluation e;
  e.selection = sums[0] / std::max(sums[1], 1.0);
  e.metrics["valid_loss"] = e.selection;
  e.metrics["valid_perplexity"] = std::exp(e.selection);
  return e;
}

void TranslationTask::restore(const std::string& position, const NamedTensors& /*carried*/,
                              bool /*other_rows*/) {
  batches_.seek(position);
}

}  // namespace rondo
