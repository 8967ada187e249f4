// What every network has in common for those who do not care which it is: named tensors in, named
// tensors out, a loss, and a state carried between calls.
#pragma once

#include "rondo/config/model_config.h"
#include "rondo/nn/head_loss.h"
#include "rondo/nn/module.h"
#include "rondo/nn/probe.h"
#include "rondo/nn/tensor_file.h"
#include "rondo/recurrence/state.h"

namespace rondo {

class Stack;

class Network : public nn::Module {
 public:
  // Images: `images` [B, 3, H, W] (and `permutation.0`, ... in order of use) → `logits` [B,
  // classes]. Translation: `source` [B, S], `target` [B, T] → `logits` [B, T, V]. Language models:
  // `tokens` [B, N], optional `reset` [B] → `logits` [B, N, V]; `state` is carried.
  // Error{bad_input} when a tensor is missing or has the wrong type, shape or values.
  virtual NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) = 0;

  // The mean cross-entropy of `outputs` against inputs["labels"], which stand beside the logits
  // they judge. Labels below zero (and padding, in translation) are not scored.
  virtual Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const = 0;

  // Inputs without memory, of one example, to count multiply-adds with. `tokens`: length of a
  // sequence, 0 = the network's usual one.
  virtual NamedTensors example(int64_t tokens) const = 0;

  // The stacks of levels, by the names of their modules.
  virtual std::map<std::string, Stack*> stacks() const = 0;
  // Training: how many batches one optimizer step reads, for parts that average over batches.
  virtual void batches_per_step(int64_t /*batches*/) {}
};

// The network of a configuration, weights undefined until nn::initialize() or load_weights().
// Error{bad_input} where the configuration has no meaning.
std::shared_ptr<Network> build_network(const ModelConfig& config);

// Names a model for its states: configuration and weights.
std::string fingerprint(const ModelConfig& config, const Network& network);

// A model file: weights with their configuration inside (resolve_model() reads it back).
// `more`: further metadata.
void save_model(const std::string& path, const ModelConfig& config, const Network& network,
                const std::map<std::string, std::string>& more = {});

// inputs[name], checked. `rank` -1 = any.
Tensor require_input(const NamedTensors& inputs, const std::string& name, at::ScalarType type,
                     int64_t rank);
// int64 tokens [B, T] below `vocabulary`; int32 is widened.
Tensor require_tokens(const NamedTensors& inputs, const std::string& name, int64_t vocabulary);
// Error{bad_input} unless `tokens` are that.
void check_tokens(const Tensor& tokens, const std::string& name, int64_t vocabulary);
// images [B, 3, side, side].
Tensor require_images(const NamedTensors& inputs, int64_t side);

// Cross-entropy summed over the labels that are scored: not `ignored`, not negative. `smoothing` is
// the share of each label spread evenly over all classes.
struct LossSum {
  Tensor sum;
  int64_t count = 0;
};
LossSum sum_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored = -1,
                          double smoothing = 0.0);
// The same of the logits that `head` makes of x [..., D], which are never held as a whole.
LossSum sum_cross_entropy(const Tensor& x, const nn::Head& head, const Tensor& labels,
                          int64_t ignored, double smoothing);
// Mean cross-entropy over labels that are not `ignored` and not negative; 0 when none is scored.
Tensor mean_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored = -1);

}  // namespace rondo
