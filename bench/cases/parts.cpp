// Networks and training steps for the cases.
#include "bench/cases/parts.h"

#include "rondo/config/zoo.h"
#include "rondo/model/cost.h"
#include "rondo/nn/gradients.h"
#include "rondo/nn/precision.h"

namespace rondo {

std::vector<BenchPrecision> bench_precisions() {
  std::vector<BenchPrecision> all = {{"fp32", false}};
  if (nn::cpu_has_bf16()) all.push_back({"bf16", true});
  return all;
}

LanguageModelConfig mini_model(const char* name, int64_t levels) {
  auto c = std::get<LanguageModelConfig>(find_model(name).config().network);
  c.width = 256;
  c.hidden = 1024;
  c.heads = 4;
  c.head_width = 64;
  c.depth.levels = levels;
  c.time.window = 32;
  c.time.segment = 256;
  c.time.states = 32;
  c.time.recurrent_layers = {3};
  return c;
}

std::shared_ptr<Network> drawn_network(const ModelConfig& config) {
  std::shared_ptr<Network> network = build_network(config);
  nn::initialize(*network, /*seed=*/1);
  return network;
}

double forward_flops(const ModelConfig& config, int64_t rows, int64_t tokens) {
  return 2.0 * measure_cost(config, tokens).multiply_adds * static_cast<double>(rows);
}

TrainingStep::TrainingStep(std::shared_ptr<Network> network, std::function<LossSum()> loss,
                           bool bf16, const OptimizerConfig& optimizer)
    : network_(std::move(network)),
      loss_(std::move(loss)),
      bf16_(bf16),
      optimizer_(make_optimizer(optimizer, *network_)) {
  network_->train();
}

void TrainingStep::operator()() {
  constexpr double kRate = 1e-4;
  for (const auto& item : network_->named_parameters()) item.value().mutable_grad() = Tensor();
  LossSum loss;
  {
    const nn::MixedPrecision mixed(bf16_);
    const nn::GradientsInPlace in_place;
    loss = loss_();
    loss.sum.backward();
  }
  optimizer_->step(++number_, kRate, 1.0 / static_cast<double>(std::max<int64_t>(1, loss.count)));
}

std::shared_ptr<TrainingStep> language_step(const LanguageModelConfig& c, int64_t rows, bool bf16,
                                            const OptimizerConfig& optimizer) {
  const auto model = std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c}));
  const Tensor tokens = random_tokens(rows, c.time.segment, c.vocabulary);
  const Tensor labels = random_tokens(rows, c.time.segment, c.vocabulary);
  const auto carried = std::make_shared<State>();
  const bool grows = c.time.kind == "none";
  const auto loss = [model, tokens, labels, carried, grows] {
    if (grows) *carried = State();
    return model->loss_of_tokens(tokens, labels, *carried, /*smoothing=*/0.0);
  };
  return std::make_shared<TrainingStep>(model, loss, bf16, optimizer);
}

int64_t count_parameters(const Network& network) {
  int64_t count = 0;
  for (const auto& item : network.named_parameters()) count += item.value().numel();
  return count;
}

Tensor random_tokens(int64_t rows, int64_t columns, int64_t vocabulary) {
  return at::randint(vocabulary, {rows, columns}, at::kLong);
}

}  // namespace rondo
