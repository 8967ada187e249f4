// SReT: residual coefficients and the projection after a loop.
#include "rondo/recurrence/recursive.h"

namespace rondo {

ResidualCoefficients::ResidualCoefficients(const std::string& placement, int64_t sublayers) {
  if (placement == "identity" || placement == "both") {
    identity_ = parameter("identity", {sublayers}, nn::constant(1.0));
  }
  if (placement == "branch" || placement == "both") {
    branch_ = parameter("branch", {sublayers}, nn::constant(1.0));
  }
}

nn::WeightedSum ResidualCoefficients::join(int64_t sublayer, const Tensor& x,
                                           const Tensor& branch) const {
  const auto of = [&](const Tensor& c) { return c.defined() ? c[sublayer] : Tensor(); };
  return {x, branch, of(identity_), of(branch_)};
}

CompiledJoin ResidualCoefficients::compile(int64_t sublayer) const {
  const auto of = [&](const Tensor& c) { return c.defined() ? c[sublayer].item<float>() : 1.0F; };
  return {of(identity_), of(branch_)};
}

LoopProjection::LoopProjection(const RecursiveConfig& config, int64_t width, double epsilon) {
  const auto hidden = static_cast<int64_t>(static_cast<double>(width) * config.projection);
  norm_ = register_module("norm", std::make_shared<nn::Norm>(nn::NormKind::layer, width, epsilon));
  nn::FeedForwardShape shape;
  shape.width = width;
  shape.hidden = hidden;
  feed_forward_ = register_module(
      "feed_forward",
      std::make_shared<nn::FeedForward>(shape, nn::torch_init(width), nn::torch_init(hidden)));
  residual_ =
      register_module("residual", std::make_shared<ResidualCoefficients>(config.residual, 1));
}

nn::WeightedSum LoopProjection::forward(const nn::WeightedSum& x, const Scope& scope) const {
  const auto [sum, u] = norm_->forward(x, scope / "norm", nn::Result::branch);
  scope.elementwise(sum);
  return residual_->join(0, sum, feed_forward_->forward(u, Tensor(), scope / "feed_forward"));
}

CompiledLoopProjection LoopProjection::compile(nn::WeightPacker& packer) const {
  return {norm_->compile(packer), feed_forward_->compile(packer), residual_->compile(0)};
}

}  // namespace rondo
