// Image classification on a flat sequence of patches: vision transformer, RingFormer, Universal,
// One Wide FFN, DeiT and its recursions, and the MLP-Mixer, by configuration.
#pragma once

#include <functional>

#include "rondo/model/compiled_image.h"
#include "rondo/model/network.h"
#include "rondo/recurrence/stack.h"

namespace rondo {

class Vision : public Network {
 public:
  explicit Vision(const VisionConfig& config);

  NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) override;
  Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const override;
  NamedTensors example(int64_t tokens) const override;
  std::map<std::string, Stack*> stacks() const override { return {{"stack", stack_.get()}}; }

  // For evaluation mode.
  std::shared_ptr<const CompiledImageNetwork> compile() const;

  const VisionConfig& config() const { return config_; }

 private:
  Tensor embed_patches(const Tensor& images, const Scope& scope);
  Tensor classify(const Tensor& x, const Scope& scope) const;

  VisionConfig config_;
  std::shared_ptr<nn::Conv2d> patches_;
  Tensor class_token_;  // [1, 1, D]
  Tensor positions_;    // learned [1, T, D]
  std::shared_ptr<Stack> stack_;
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::Linear> head_;
};

// The permutations of an image network's forward pass: inputs `permutation.N` if given; otherwise
// random in training or if so configured, and fixed in evaluation.
Permutations image_permutations(const NamedTensors& inputs, const RecursiveConfig& config,
                                bool training);

// The loss of an image network: `loss` of its logits; with mixed depth, the mean over both depths.
Tensor image_loss(const NamedTensors& outputs,
                  const std::function<Tensor(const Tensor& logits)>& loss);
// The same with the mean cross-entropy against inputs["labels"].
Tensor image_loss(const NamedTensors& inputs, const NamedTensors& outputs);

}  // namespace rondo
