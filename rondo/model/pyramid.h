// Image classification in stages of decreasing resolution and increasing width: SReT and PiT.
#pragma once

#include "rondo/model/compiled_image.h"
#include "rondo/model/network.h"
#include "rondo/recurrence/stack.h"

namespace rondo {

// Image → first feature map: three strided convolutions with batch norm, or one over patches.
class PyramidStem : public nn::Module {
 public:
  explicit PyramidStem(const PyramidConfig& config);
  Tensor forward(const Tensor& images, const Scope& scope);
  // For evaluation mode, with batch norms folded in.
  std::vector<nn::CompiledConvolution> compile(nn::WeightPacker& packer) const;
  void batches_per_step(int64_t batches);

 private:
  std::vector<std::shared_ptr<nn::Conv2d>> convolutions_;
  std::vector<std::shared_ptr<nn::BatchNorm2d>> norms_;
};

class Pyramid : public Network {
 public:
  explicit Pyramid(const PyramidConfig& config);

  NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) override;
  Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const override;
  NamedTensors example(int64_t tokens) const override;
  std::map<std::string, Stack*> stacks() const override;
  void batches_per_step(int64_t batches) override { stem_->batches_per_step(batches); }

  // For evaluation mode.
  std::shared_ptr<const CompiledImageNetwork> compile() const;

  const PyramidConfig& config() const { return config_; }

 private:
  // The feature map and, if there is one, the class token [B, 1, C].
  struct Features {
    Tensor map;  // [B, C, h, w]
    Tensor class_token;
  };
  Features run_stage(int64_t stage, const Features& in, bool shallow, ForwardContext& context,
                     const Scope& scope);
  Features pool(int64_t stage, const Features& in, const Scope& scope);
  Tensor run(const Tensor& stem, bool shallow, ForwardContext& context, const Scope& scope);

  PyramidConfig config_;
  std::shared_ptr<PyramidStem> stem_;
  Tensor positions_;    // [1, C, h, w]
  Tensor class_token_;  // [1, 1, C]
  std::shared_ptr<nn::Bank<Stack>> stages_;
  std::shared_ptr<nn::Bank<nn::Conv2d>> pools_;
  std::shared_ptr<nn::Bank<nn::Linear>> token_pools_;
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::Linear> head_;
};

}  // namespace rondo
