// Shared by the cases: networks with random weights, training steps, FLOP counts.
#pragma once

#include "bench/bench.h"
#include "rondo/model/language_model.h"
#include "rondo/train/optimizer.h"

namespace rondo {

// Precision of a step and its name in reports.
struct BenchPrecision {
  const char* name;  // "fp32"
  bool bf16;
};
// fp32, and bf16 where this CPU multiplies it in hardware.
std::vector<BenchPrecision> bench_precisions();

// A model of the Block-Recurrent paper in the sizes of recipes/mini/lm-bytes.toml.
LanguageModelConfig mini_model(const char* name, int64_t levels);

// The network of a configuration, randomly initialized.
std::shared_ptr<Network> drawn_network(const ModelConfig& config);

// Floating-point operations of a forward pass over `rows` examples: two per multiply-add. A
// training step takes three times as many.
double forward_flops(const ModelConfig& config, int64_t rows, int64_t tokens = 0);

// One training step as in the trainer: loss, gradients, optimizer.
class TrainingStep {
 public:
  TrainingStep(std::shared_ptr<Network> network, std::function<LossSum()> loss, bool bf16,
               const OptimizerConfig& optimizer = {});
  void operator()();
  const Network& network() const { return *network_; }

 private:
  std::shared_ptr<Network> network_;
  std::function<LossSum()> loss_;
  bool bf16_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t number_ = 0;
};

// A training step of a language model, always on the same random text, carrying its state over
// unless it would grow (time.kind none).
std::shared_ptr<TrainingStep> language_step(const LanguageModelConfig& config, int64_t rows,
                                            bool bf16, const OptimizerConfig& optimizer = {});

int64_t count_parameters(const Network& network);

// Uniformly random tokens [rows, columns].
Tensor random_tokens(int64_t rows, int64_t columns, int64_t vocabulary);

}  // namespace rondo
