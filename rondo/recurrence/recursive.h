// Sliced Recursive Transformer (SReT): blocks applied several times, learnable residual
// coefficients, a non-linear projection after each loop. Sliced attention is in sliced.h.
#pragma once

#include "rondo/config/depth_config.h"
#include "rondo/nn/layers.h"

namespace rondo {

// x = identity · x + branch · f(x).
struct CompiledJoin {
  float identity = 1.0F;
  float branch = 1.0F;
};

// The learnable residual connection of one block, shared by its loops: identity·x + branch·f(x),
// one pair of scalars per sub-layer, all initialized to 1. Coefficients excluded by the placement
// are the constant 1 and not parameters.
class ResidualCoefficients : public nn::Module {
 public:
  ResidualCoefficients(const std::string& placement, int64_t sublayers);
  // The sum is left to the consumer.
  nn::WeightedSum join(int64_t sublayer, const Tensor& x, const Tensor& branch) const;
  CompiledJoin compile(int64_t sublayer) const;

 private:
  Tensor identity_;  // [sublayers] or undefined
  Tensor branch_;    // [sublayers] or undefined
};

struct CompiledLoopProjection {
  nn::CompiledNorm norm;
  nn::CompiledFeedForward feed_forward;
  CompiledJoin join;
};

// NLL: x = θ·x + ζ·MLP(LN x), with separate weights and coefficients for each application.
class LoopProjection : public nn::Module {
 public:
  LoopProjection(const RecursiveConfig& config, int64_t width, double epsilon);
  nn::WeightedSum forward(const nn::WeightedSum& x, const Scope& scope) const;
  CompiledLoopProjection compile(nn::WeightPacker& packer) const;

 private:
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::FeedForward> feed_forward_;
  std::shared_ptr<ResidualCoefficients> residual_;
};

}  // namespace rondo
