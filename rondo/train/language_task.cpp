// The language-modeling task.
#include "rondo/train/language_task.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/text.h"
#include "rondo/train/device.h"
#include "rondo/train/start.h"

namespace rondo {
namespace {

// A model whose state contributes fewer nats than this does not use its state.
constexpr double kUnusedState = 1e-4;
constexpr int64_t kUnusedProbesBeforeWarning = 5;

const LanguageModelConfig& language_config(const RunConfig& config) {
  return std::get<LanguageModelConfig>(config.model.network);
}

std::unique_ptr<Documents> open_documents(const std::string& source, const std::string& cache,
                                          const Tokenizer& tokenizer, int64_t divide = 0) {
  if (source.empty()) return nullptr;
  return std::make_unique<Documents>(Documents::open({source, cache, divide}, tokenizer));
}

std::unique_ptr<Documents> open_training(const RunConfig& config, const std::string& cache,
                                         const Tokenizer& tokenizer) {
  if (config.data.train.empty()) {
    throw Error(ExitCode::bad_input, "data.train: missing",
                "specify the documents: --set data.train=FOLDER");
  }
  const int64_t rows = language_config(config).vocabulary;
  if (tokenizer.vocabulary() > rows) {
    throw Error(ExitCode::bad_input,
                fmt::format("model.vocabulary: expected at least {}, the vocabulary of {}, got {}",
                            tokenizer.vocabulary(), tokenizer.name(), rows),
                "set model.vocabulary to the tokenizer's vocabulary size");
  }
  return open_documents(config.data.train, cache, tokenizer, config.data.divide);
}

SegmentOptions training_segments(const RunConfig& config, const Tokenizer& tokenizer,
                                 const Shard& shard) {
  SegmentOptions o;
  o.shard = shard;
  o.rows = config.train.batch;
  o.length = language_config(config).time.segment;
  o.seed = static_cast<uint64_t>(config.train.seed);
  o.padding = tokenizer.special_tokens().padding;
  const int64_t width = language_config(config).width;
  require_memory(
      saturating_product(saturating_product(o.rows, o.length), width, sizeof(float)),
      fmt::format("train.batch: {} rows of {} tokens (model.time.segment) of width {}",
                  with_commas(o.rows), with_commas(o.length), width),
      "choose a smaller train.batch; train.accumulate makes large steps from small batches");
  return o;
}

// Collects the gates of a forward pass.
class GateWatcher : public Observer {
 public:
  bool wants(const std::string& name) override {
    return name.size() > 5 && name.compare(name.size() - 5, 5, ".gate") == 0;
  }
  void activation(const std::string& name, const Tensor& value) override {
    auto& [sum, count] = gates_[name.substr(0, name.size() - 5)];
    sum += value.mean().item<double>();
    ++count;
  }
  // The mean over all gates, and that of each.
  void report(Metrics& metrics) const {
    double all = 0;
    double count = 0;
    for (const auto& [name, gate] : gates_) {
      metrics["gate/" + name] = gate.first / gate.second;
      all += gate.first;
      count += gate.second;
    }
    metrics["gate_mean"] = all / std::max(count, 1.0);
  }

 private:
  std::map<std::string, std::pair<double, double>> gates_;  // sum of means, count
};

}  // namespace

LanguageTask::LanguageTask(const RunConfig& config, const std::string& cache_folder,
                           ProcessGroup* group)
    : config_(config),
      group_(group),
      tokenizer_(make_tokenizer(config.data.tokenizer)),
      train_(open_training(config, cache_folder, *tokenizer_)),
      valid_(open_documents(config.data.valid, cache_folder, *tokenizer_)),
      reader_(*train_, training_segments(config, *tokenizer_, shard_of(group))),
      model_(std::make_shared<LanguageModel>(language_config(config))) {
  start_weights(*model_, config.train);
  model_->to(training_device(config.train, group));
  if (config.train.recompute_levels > 0 && model_->stack().feedback_level() != kNone) {
    throw Error(ExitCode::bad_input,
                "train.recompute_levels: not supported with feedback, whose gradient flows through "
                "the states between blocks",
                "set train.recompute_levels = 0");
  }
}

LossSum LanguageTask::next_loss() {
  reader_.next(batch_);
  const SegmentTensors t(batch_, model_->device());
  state_before_ = state_.reset(t.reset);
  state_ = state_before_;
  return model_->loss_of_tokens(t.tokens, t.labels, state_, config_.train.label_smoothing);
}

void LanguageTask::forget_last() {
  state_ = state_before_;
  for (const auto& [name, tensor] : state_before_.tensors()) {
    if (!tensor.is_floating_point() || at::isfinite(tensor).all().item<bool>()) continue;
    // The batch before it already left the state so (its last update is not in the loss): reset.
    state_ = State();
    return;
  }
}

double LanguageTask::units_per_batch() const {
  return static_cast<double>(config_.train.batch * language_config(config_).time.segment);
}

std::optional<Task::Evaluation> LanguageTask::evaluate(const StopCheck& stop) {
  if (valid_ == nullptr) return std::nullopt;
  ScoreOptions o;
  o.shard = shard_of(group_);
  o.rows = std::min(config_.train.batch, (valid_->count() + o.shard.size - 1) / o.shard.size);
  o.length = language_config(config_).time.segment;
  o.max_tokens = config_.train.eval_tokens;
  o.stop = stop;
  LanguageScore score = score_documents(*model_, *valid_, o);
  std::vector<double> sums = {score.nats, static_cast<double>(score.tokens), score.bytes};
  sum_over(group_, sums);
  score.nats = sums[0];
  score.tokens = static_cast<int64_t>(sums[1]);
  score.bytes = sums[2];
  Evaluation e;
  e.metrics["valid_bits_per_token"] = score.bits_per_token();
  e.metrics["valid_bits_per_byte"] = score.bits_per_byte();
  e.selection = score.bits_per_token();
  return e;
}

Metrics LanguageTask::probe() {
  if (!model_->stack().has_states() || batch_.rows == 0) return {};
  const at::NoGradGuard no_grad;
  model_->eval();
  const SegmentTensors t(batch_, model_->device());
  const auto loss = [&](bool zero_states, const Scope& scope) {
    State state = state_before_;
    const Tensor logits = model_->forward_tokens(t.tokens, state, scope, zero_states);
    const LossSum sum = sum_cross_entropy(logits, t.labels);
    return sum.sum.item<double>() / static_cast<double>(std::max<int64_t>(sum.count, 1));
  };
  GateWatcher gates;
  const double with = loss(false, Scope(&gates));
  const double use = loss(true, Scope()) - with;
  Metrics metrics = {{"state_use", use}};
  gates.report(metrics);
  for (const auto& [name, tensor] : state_.tensors()) {
    if (name.size() < 6 || name.compare(name.size() - 6, 6, ".state") != 0) continue;
    const std::string layer = "state_" + name.substr(6, name.size() - 12);
    metrics[layer + "_norm"] = tensor.norm(2, -1).mean().item<double>();
    metrics[layer + "_rank"] = effective_rank(tensor);
  }
  unused_probes_ = use < kUnusedState ? unused_probes_ + 1 : 0;
  if (unused_probes_ == kUnusedProbesBeforeWarning) {
    log_warn(
        "the last {} probes show that the model ignores its recurrent state (gain {:.2g} nats); "
        "such a model rarely recovers: try another seed, a lower learning rate or a fixed gate",
        kUnusedProbesBeforeWarning, use);
  }
  return metrics;
}

void LanguageTask::restore(const std::string& position, const NamedTensors& carried,
                           bool other_rows) {
  reader_.seek(position, other_rows);
  state_ = State();
  for (const auto& [name, tensor] : carried) {
    state_.set(name, State::stays_on_cpu(name) ? tensor : tensor.to(model_->device()));
  }
}

double effective_rank(const Tensor& state) {
  const Tensor values = std::get<1>(at::linalg_svd(state.to(at::kFloat), /*full_matrices=*/false));
  const Tensor p = values / values.sum(-1, /*keepdim=*/true).clamp_min(1e-12);  // [B, min(S, D)]
  const Tensor entropy = -(p * p.clamp_min(1e-12).log()).sum(-1);
  return entropy.exp().mean().item<double>();
}

}  // namespace rondo
