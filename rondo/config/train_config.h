// Training configuration, torch-free: [train], [optimizer], [schedule]. The data sections are in
// train_config_data.h.
#pragma once

#include "rondo/config/augment_config.h"
#include "rondo/config/model_config.h"
#include "rondo/config/train_config_data.h"

namespace rondo {

struct TrainConfig {
  std::string start;
  int64_t steps = 1000;
  int64_t batch = 8;
  int64_t accumulate = 1;
  int64_t global_batch = 0;
  double clip = 1.0;
  double label_smoothing = 0.0;
  std::string precision = "fp32";
  std::string reduce_precision = "fp32";
  bool shard_optimizer = false;
  bool sync_batch_norm = false;
  int64_t recompute_levels = 0;
  double ema = 0.0;
  int64_t seed = 1;
  int64_t threads = 0;
  std::string device = "cpu";
  int64_t log_every = 10;
  int64_t eval_every = 500;
  int64_t eval_tokens = 200000;
  int64_t save_every = 500;
  int64_t keep = 3;
  int64_t patience = 0;
  int64_t probe_every = 100;
};

template <class V>
void describe(V& v, TrainConfig& c) {
  v.field("start", c.start,
          "initialize from the weights of this run or model file (fine-tuning); images: positions "
          "are resized for another resolution, the head is reinitialized for other classes");
  v.field("steps", c.steps, "optimizer steps", between(1, 1e12));
  v.field("batch", c.batch,
          "batch size: documents processed in parallel; maximum number of sentence pairs; images",
          between(1, 1 << 20));
  v.field("accumulate", c.accumulate, "batches accumulated per optimizer step",
          between(1, 1 << 20));
  v.field("global_batch", c.global_batch,
          "total rows per step over all processes, however many there are: batch (an upper limit) "
          "and accumulate follow from it; 0 = each process uses batch rows, accumulate times",
          between(0, 1 << 30));
  v.field("clip", c.clip, "maximum global gradient norm; 0 = no clipping", at_least(0));
  v.field("label_smoothing", c.label_smoothing,
          "fraction of the label spread over all tokens or classes", between(0, 0.999));
  v.field("precision", c.precision, "bf16: mixed precision with fp32 master weights",
          one_of({"fp32", "bf16"}));
  v.field("reduce_precision", c.reduce_precision,
          "multiple processes: precision of the gradient all-reduce; bf16 halves the traffic and "
          "rounds to 8 bits of precision",
          one_of({"fp32", "bf16"}));
  v.field("shard_optimizer", c.shard_optimizer,
          "multiple processes: each keeps the optimizer state of its share of the weights only "
          "(ZeRO-1)");
  v.field("sync_batch_norm", c.sync_batch_norm,
          "multiple processes: compute batch norm statistics over all of them");
  v.field("recompute_levels", c.recompute_levels,
          "keep only the activations of every n-th level and recompute the rest in the backward "
          "pass; 0 = keep all; memory is lowest at about a quarter of the square root of the "
          "number of levels",
          at_least(0));
  v.field("ema", c.ema, "decay of the weight average (EMA) that is evaluated; 0 = off",
          between(0, 0.999999));
  v.field("seed", c.seed, "random seed of weights, data order and dropout", at_least(0));
  v.field("threads", c.threads, "CPU threads; 0 = one per core", between(0, kMaxThreads));
  v.field("device", c.device,
          "where the network is trained; cuda (of a libtorch that has it) is untested",
          one_of({"cpu", "cuda"}));
  v.field("log_every", c.log_every, "steps between lines in metrics.jsonl", at_least(1));
  v.field("eval_every", c.eval_every, "steps between evaluations; 0 = only at the end",
          at_least(0));
  v.field("eval_tokens", c.eval_tokens,
          "tokens or images of the validation set to use during training; 0 = all", at_least(0));
  v.field("save_every", c.save_every, "steps between checkpoints", at_least(1));
  v.field("keep", c.keep, "number of most recent checkpoints to keep", between(1, 1000));
  v.field("patience", c.patience, "stop after this many evaluations without improvement; 0 = never",
          at_least(0));
  v.field("probe_every", c.probe_every,
          "recurrent models: steps between measurements of state usage; 0 = never", at_least(0));
}

struct OptimizerConfig {
  std::string kind = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.field("kind", c.kind, "optimizer", one_of({"adam", "adamw", "adafactor"}));
  v.field("beta1", c.beta1, "momentum", between(0, 0.9999));
  v.field("beta2", c.beta2, "adam, adamw: decay rate of the second moment", between(0, 0.99999));
  v.field("epsilon", c.epsilon, "adam, adamw: added to the denominator", between(0, 1));
  v.field("weight_decay", c.weight_decay,
          "adamw: decoupled weight decay; adam: L2 penalty added to the gradient; never applied to "
          "norms, biases, scales or residual coefficients",
          between(0, 10));
}

struct ScheduleConfig {
  std::string kind = "cosine";
  double rate = 1e-3;
  double final_rate = 0.0;
  int64_t warmup = 0;
};

template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.field("kind", c.kind,
          "learning rate schedule after warm-up; rsqrt = rate / sqrt(max(step, warmup)), as used "
          "by the Block-Recurrent authors",
          one_of({"constant", "linear", "cosine", "inverse-sqrt", "rsqrt"}));
  v.field("rate", c.rate, "peak learning rate (rsqrt: the factor)", between(0, 1000));
  v.field("final_rate", c.final_rate, "linear, cosine: learning rate at the last step",
          between(0, 1000));
  v.field("warmup", c.warmup, "linear warm-up steps", at_least(0));
}

// A complete experiment: one TOML file. [data] is read into the struct of the model's task; the
// others are unused. [augment] and [distill] apply to image networks only.
struct RunConfig {
  ModelConfig model;
  TextConfig data;
  PairConfig pairs;
  ImageDataConfig images;
  AugmentConfig augment;
  DistillConfig distill;
  TrainConfig train;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
};

RunConfig read_run_config(const ConfigTable& table);
std::string dump_run_config(const RunConfig& config);

// The sections of an experiment for `task`, in file order.
std::vector<std::string> run_config_sections(const std::string& task);

// Every key of a section other than [model], for the manual; [data] depends on `task`.
std::vector<FieldHelp> run_config_help(const std::string& section, const std::string& task);

// The learning rate at `step` (counted from 1) of `steps`.
double learning_rate(const ScheduleConfig& schedule, int64_t step, int64_t steps);

}  // namespace rondo
