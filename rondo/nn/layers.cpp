// Basic modules with weights.
#include "rondo/nn/layers.h"

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/synchronized_norm.h"

namespace rondo::nn {
namespace {

constexpr double kBatchEpsilon = 1e-5;

}  // namespace

LinearInit torch_init(int64_t fan_in) { return {torch_default(fan_in), torch_default(fan_in)}; }

LinearInit fan_in_init(int64_t fan_in) {
  return {truncated_normal(std::sqrt(1.0 / static_cast<double>(fan_in))), constant(0.0)};
}

Linear::Linear(int64_t in, int64_t out, bool bias, LinearInit initializers) {
  weight_ = parameter("weight", {out, in}, initializers.weight);
  if (bias) bias_ = parameter("bias", {out}, initializers.bias);
}

Tensor Linear::forward(const Tensor& x, const Scope& scope, Result result) const {
  return linear(x, map(), scope, result);
}

CompiledLinear Linear::compile(WeightPacker& packer) const { return packer.linear(weight_, bias_); }

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, Convolution how) : how_(how) {
  const int64_t fan_in = in / how.groups * kernel * kernel;
  weight_ = parameter("weight", {out, in / how.groups, kernel, kernel}, torch_default(fan_in));
  bias_ = parameter("bias", {out}, torch_default(fan_in));
}

Tensor Conv2d::forward(const Tensor& x, const Scope& scope) const {
  return conv2d(x, weight_, bias_, how_, scope);
}

CompiledConvolution Conv2d::compile(WeightPacker& packer, const CompileOptions& options) const {
  const at::NoGradGuard no_grad;
  CompiledConvolution c;
  c.shape = {weight_.size(2), how_.stride, how_.padding};
  c.in = weight_.size(1) * how_.groups;
  c.out = weight_.size(0);
  c.planar = options.planar;
  c.relu = options.relu;
  Tensor weight = weight_;
  Tensor bias = bias_;
  if (options.norm != nullptr) {
    const auto [scale, shift] = options.norm->scaling();
    weight = weight * scale.view({-1, 1, 1, 1});
    bias = bias * scale + shift;
  }
  if (how_.groups == 1) {
    if (!options.planar) weight = weight.permute({0, 2, 3, 1});  // [out, k, k, in]
    c.patches = packer.linear(weight.flatten(1), bias);
    return c;
  }
  RONDO_ASSERT(how_.groups == c.in && !options.planar && !options.relu);
  const int64_t multiplier = c.out / c.in;
  const int64_t k = c.shape.kernel;
  c.channels.weight = packer.vector(weight.view({c.in, multiplier, k, k}).permute({1, 2, 3, 0}));
  c.channels.bias = packer.vector(bias);
  c.channels.multiplier = multiplier;
  return c;
}

BatchNorm2d::BatchNorm2d(int64_t channels) {
  weight_ = parameter("weight", {channels}, constant(1.0));
  bias_ = parameter("bias", {channels}, constant(0.0));
  running_mean_ = buffer("running_mean", at::zeros({channels}));
  running_var_ = buffer("running_var", at::ones({channels}));
  num_batches_tracked_ = buffer("num_batches_tracked", at::zeros({}, at::kLong));
}

Tensor BatchNorm2d::forward(const Tensor& x, const Scope& scope) {
  scope.normalized(static_cast<double>(x.numel()));
  if (x.is_meta()) return shape_only(x.sizes().vec(), x, weight_, bias_);
  if (is_training()) num_batches_tracked_.add_(1);
  if (const SumOverProcesses* sum = norms_are_summed_by(); sum != nullptr && is_training()) {
    return synchronized_batch_norm(as_wanted(Operation::norm, x), weight_, bias_,
                                   {running_mean_, running_var_, momentum_}, kBatchEpsilon, *sum);
  }
  return at::batch_norm(as_wanted(Operation::norm, x), weight_, bias_, running_mean_, running_var_,
                        is_training(), momentum_, kBatchEpsilon, /*cudnn_enabled=*/false);
}

BatchNorm2d::Scaling BatchNorm2d::scaling() const {
  const Tensor scale = weight_ / (running_var_ + kBatchEpsilon).sqrt();
  return {scale, bias_ - running_mean_ * scale};
}

void BatchNorm2d::batches_per_step(int64_t batches) {
  momentum_ = 1.0 - std::pow(1.0 - 0.1, 1.0 / static_cast<double>(batches));
}

Norm::Norm(NormKind kind, int64_t width, double epsilon) : kind_(kind), epsilon_(epsilon) {
  weight_ = parameter("weight", {width}, constant(1.0));
  if (kind == NormKind::layer) bias_ = parameter("bias", {width}, constant(0.0));
}

Tensor Norm::forward(const Tensor& x, const Scope& scope, Result result) const {
  return kind_ == NormKind::layer ? layer_norm(x, weight_, bias_, epsilon_, scope, result)
                                  : rms_norm(x, weight_, epsilon_, scope, result);
}

NormedSum Norm::forward(const WeightedSum& sum, const Scope& scope, Result result) const {
  return kind_ == NormKind::layer ? layer_norm(sum, weight_, bias_, epsilon_, scope, result)
                                  : rms_norm(sum, weight_, epsilon_, scope, result);
}

CompiledNorm Norm::compile(WeightPacker& packer) const {
  return {packer.vector(weight_), packer.vector(bias_), static_cast<float>(epsilon_),
          weight_.size(0)};
}

LowRank::LowRank(int64_t in, int64_t out, int64_t rank) {
  if (rank == 0) {
    full_ = parameter("full", {in, out}, constant(0.0));
    return;
  }
  down_ = parameter("down", {rank, in}, normal(1e-6));
  up_ = parameter("up", {rank, out}, constant(0.0));
}

void LowRank::report(const Tensor& x, const Scope& scope) const {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  scope.low_rank({number(x.numel() / down_.size(1)), number(down_.size(1)), number(down_.size(0)),
                  number(up_.size(1))});
}

Tensor LowRank::forward(const Tensor& x, const Scope& scope) const {
  if (full_.defined()) return matmul(x, full_, scope);
  if (scope.watched()) report(x, scope);
  return matmul(linear(x, down_, Tensor(), scope / "down"), up_, scope / "up");
}

Tensor LowRank::join(const Tensor& x, const Scope& scope) const {
  scope.elementwise(x);
  const Tensor g = forward(x, scope);
  scope.record("joined", x);
  scope.record("added", g);
  return x + g;
}

Tensor LowRank::matrix() const {
  return full_.defined() ? full_.t() : at::matmul(up_.t(), down_);  // [out, in]
}

CompiledLowRank LowRank::compile(WeightPacker& packer) const {
  if (full_.defined()) return {{}, packer.matrix(full_.t())};
  return {packer.matrix(down_), packer.matrix(up_.t())};
}

LinearMap LowRank::added_to(LinearMap map) const {
  if (full_.defined()) {
    map.weight = map.weight + full_.t();
  } else {
    map.up = up_;
    map.down = down_;
  }
  return map;
}

FeedForward::FeedForward(const FeedForwardShape& shape, LinearInit up, LinearInit down)
    : shape_(shape) {
  up_ = register_module("up", std::make_shared<Linear>(shape.width, shape.hidden, shape.bias, up));
  down_ = register_module("down",
                          std::make_shared<Linear>(shape.hidden, shape.width, shape.bias, down));
}

CompiledFeedForward FeedForward::compile(WeightPacker& packer) const {
  return {up_->compile(packer), down_->compile(packer), shape_.activation};
}

Tensor FeedForward::forward(const Tensor& u, const Tensor& inner, const Scope& scope) const {
  const bool apart = kernels_in_use() == Kernels::fused;  // our kernel adds the bias along the way
  const Tensor bias = apart ? up_->bias() : Tensor();
  Tensor h = apart ? linear(u, up_->without_bias(), scope / "up", Result::branch)
                   : up_->forward(u, scope / "up", Result::branch);  // [B, T, F]
  if (inner.defined()) {
    scope.elementwise(h);
    (scope / "signal").record("joined", h);
    (scope / "signal").record("added", inner);
    h = h + inner;
  }
  if (shape_.activation == Activation::gelu) scope.gelu(static_cast<double>(h.numel()));
  h = nn::dropout(activate(h, shape_.activation, bias), shape_.hidden_dropout, is_training());
  scope.record("hidden", h);
  return down_->forward(h, scope / "down");  // [B, T, D]
}

}  // namespace rondo::nn
