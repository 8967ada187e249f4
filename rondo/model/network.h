// The common interface of all networks: named tensors in, named tensors out, a loss, and a state
// carried between calls.
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
  // Throws Error{bad_input} if a tensor is missing or has the wrong type, shape or values.
  virtual NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) = 0;

  // The mean cross-entropy of `outputs` against inputs["labels"], which are aligned with the
  // logits. Negative labels (and padding, in translation) are ignored.
  virtual Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const = 0;

  // Inputs of one example on the meta device, for counting multiply-adds. `tokens`: sequence
  // length, 0 = the network's default.
  virtual NamedTensors example(int64_t tokens) const = 0;

  // The stacks of levels, by module name.
  virtual std::map<std::string, Stack*> stacks() const = 0;
  // Of its weights.
  at::Device device() const { return parameters().front().device(); }
  // Training: prefixes of the names of parameters, by the nn::ends_stage() that a backward pass
  // reaches once their gradients are complete. All others are complete only at the end.
  virtual std::vector<std::vector<std::string>> gradient_stages() const { return {}; }
  // Training: batches per optimizer step, for modules that average over batches.
  virtual void batches_per_step(int64_t /*batches*/) {}
};

// The network of a configuration, its weights undefined until nn::initialize() or load_weights().
// Throws Error{bad_input} if the configuration is invalid.
std::shared_ptr<Network> build_network(const ModelConfig& config);

// Identifies a model by configuration and weights, for its states.
std::string fingerprint(const ModelConfig& config, const Network& network);

// Writes a model file: weights and their configuration (resolve_model() reads it back).
// `more`: additional metadata.
void save_model(const std::string& path, const ModelConfig& config, const Network& network,
                const std::map<std::string, std::string>& more = {});

// inputs[name], checked. `rank` -1 = any.
Tensor require_input(const NamedTensors& inputs, const std::string& name, at::ScalarType type,
                     int64_t rank);
// int64 tokens [B, T] below `vocabulary`; int32 is widened.
Tensor require_tokens(const NamedTensors& inputs, const std::string& name, int64_t vocabulary);
// Throws Error{bad_input} unless `tokens` are int64 [B, T] below `vocabulary`, B·T > 0.
void check_tokens(const Tensor& tokens, const std::string& name, int64_t vocabulary);
// images [B, 3, side, side].
Tensor require_images(const NamedTensors& inputs, int64_t side);

// Cross-entropy summed over labels that are neither `ignored` nor negative. `smoothing`: the share
// of each label spread evenly over all classes.
struct LossSum {
  Tensor sum;
  int64_t count = 0;
};
LossSum sum_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored = -1,
                          double smoothing = 0.0);
// The same for the logits of `head` on x [..., D], which are never materialized as a whole.
LossSum sum_cross_entropy(const Tensor& x, const nn::Head& head, const Tensor& labels,
                          int64_t ignored, double smoothing);
// Mean cross-entropy over labels that are neither `ignored` nor negative; 0 if there are none.
Tensor mean_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored = -1);

}  // namespace rondo
