// What a user may say about training, torch-free: [train], [optimizer], [schedule], [data].
#pragma once

#include "rondo/model/config.h"

namespace rondo {

struct TrainConfig {
  int64_t steps = 1000;
  int64_t batch = 8;
  int64_t accumulate = 1;
  double clip = 1.0;
  double label_smoothing = 0.0;
  std::string precision = "fp32";
  int64_t recompute_levels = 0;
  double ema = 0.0;
  int64_t seed = 1;
  int64_t threads = 0;
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
  v.field("steps", c.steps, "optimiser steps", between(1, 1e12));
  v.field("batch", c.batch,
          "rows of a batch: documents read side by side; the most sentence pairs of a batch",
          between(1, 1 << 20));
  v.field("accumulate", c.accumulate, "batches whose gradients make one step", between(1, 1 << 20));
  v.field("clip", c.clip, "largest norm of the whole gradient; 0 = no clipping", at_least(0));
  v.field("label_smoothing", c.label_smoothing, "share of the label spread over all tokens",
          between(0, 0.999));
  v.field("precision", c.precision, "bf16: mixed precision with fp32 master weights",
          one_of({"fp32", "bf16"}));
  v.field("recompute_levels", c.recompute_levels,
          "keep activations of every n-th level only and recompute the rest; 0 = keep all",
          at_least(0));
  v.field("ema", c.ema, "decay of an average of the weights that is evaluated; 0 = none",
          between(0, 0.999999));
  v.field("seed", c.seed, "of weights, data order, dropout", at_least(0));
  v.field("threads", c.threads, "CPU threads; 0 = one per core", between(0, 4096));
  v.field("log_every", c.log_every, "steps between lines of metrics.jsonl", at_least(1));
  v.field("eval_every", c.eval_every, "steps between evaluations; 0 = only at the end",
          at_least(0));
  v.field("eval_tokens", c.eval_tokens, "tokens of the validation set used while training; 0 = all",
          at_least(0));
  v.field("save_every", c.save_every, "steps between checkpoints", at_least(1));
  v.field("keep", c.keep, "newest checkpoints kept", between(1, 1000));
  v.field("patience", c.patience,
          "stop after this many evaluations without a better one; 0 = never", at_least(0));
  v.field("probe_every", c.probe_every,
          "recurrent models: steps between measurements of the state's use; 0 = never",
          at_least(0));
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
  v.field("kind", c.kind, "optimiser", one_of({"adam", "adamw", "adafactor"}));
  v.field("beta1", c.beta1, "momentum", between(0, 0.9999));
  v.field("beta2", c.beta2, "adam, adamw: decay of the second moment", between(0, 0.99999));
  v.field("epsilon", c.epsilon, "adam, adamw: added to the root", between(0, 1));
  v.field(
      "weight_decay", c.weight_decay,
      "adamw: pull towards zero, adam: added to the gradient; never on norms, biases, scales and "
      "residual coefficients",
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
          "learning rate after the warm-up; rsqrt = rate / sqrt(max(step, warmup)), the "
          "Block-Recurrent "
          "authors'",
          one_of({"constant", "linear", "cosine", "inverse-sqrt", "rsqrt"}));
  v.field("rate", c.rate, "highest learning rate (rsqrt: the factor)", between(0, 1000));
  v.field("final_rate", c.final_rate, "linear, cosine: the rate at the last step",
          between(0, 1000));
  v.field("warmup", c.warmup, "steps in which the rate grows linearly", at_least(0));
}

// Documents for language models.
struct TextConfig {
  std::string train;
  std::string valid;
  std::string test;
  std::string tokenizer = "bytes";
};

template <class V>
void describe(V& v, TextConfig& c) {
  v.field("train", c.train, "documents to learn from: a folder, a file, or a .list of files");
  v.field("valid", c.valid, "documents to evaluate on while training");
  v.field("test", c.test, "documents for 'rondo eval'");
  v.field("tokenizer", c.tokenizer, "\"bytes\" or a SentencePiece model");
}

// Sentence pairs for translation.
struct PairConfig {
  std::string train;
  std::string valid;
  std::string test;
  std::string source = "de";
  std::string target = "en";
  std::string tokenizer;
  std::string source_tokenizer;
  std::string target_tokenizer;
  int64_t batch_tokens = 4096;
  int64_t max_tokens = 128;
  bool cut = false;

  // The tokenizer of each side: its own, or the joint one.
  const std::string& tokenizer_of_source() const {
    return source_tokenizer.empty() ? tokenizer : source_tokenizer;
  }
  const std::string& tokenizer_of_target() const {
    return target_tokenizer.empty() ? tokenizer : target_tokenizer;
  }
};

template <class V>
void describe(V& v, PairConfig& c) {
  v.field("train", c.train,
          "pairs to learn from: PREFIX of PREFIX.de and PREFIX.en, two files joined by a comma, or "
          "a .tsv; plain, .gz or .zst");
  v.field("valid", c.valid, "pairs to evaluate on while training");
  v.field("test", c.test, "pairs for 'rondo eval'");
  v.field("source", c.source, "what the source file's name ends in after the prefix");
  v.field("target", c.target, "what the target file's name ends in after the prefix");
  v.field("tokenizer", c.tokenizer, "\"bytes\" or a SentencePiece model, for both sides");
  v.field("source_tokenizer", c.source_tokenizer, "for the source alone");
  v.field("target_tokenizer", c.target_tokenizer, "for the target alone");
  v.field("batch_tokens", c.batch_tokens,
          "at most so many tokens of a batch on either side, padding included",
          between(1, 1 << 24));
  v.field("max_tokens", c.max_tokens, "longer sentences are left out of training, or cut",
          between(1, 1 << 20));
  v.field("cut", c.cut, "cut sentences that are too long instead of leaving them out");
}

// A whole experiment: one TOML file. [data] is the section of the model's task; the other is
// unused.
struct RunConfig {
  ModelConfig model;
  TextConfig data;
  PairConfig pairs;
  TrainConfig train;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
};

RunConfig read_run_config(const ConfigTable& table);
std::string dump_run_config(const RunConfig& config);

// Every key of [data] ("data", by `task`), [train], [optimizer] or [schedule], for the manual.
std::vector<FieldHelp> run_config_help(const std::string& section, const std::string& task);

// The learning rate of `step` (the first is 1) of `steps`.
double learning_rate(const ScheduleConfig& schedule, int64_t step, int64_t steps);

}  // namespace rondo
