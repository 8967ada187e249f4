// Basic modules with weights: linear map, convolution, norms, feed-forward, low-rank map.
#pragma once

#include "rondo/nn/compiled.h"
#include "rondo/nn/compiled_convolution.h"
#include "rondo/nn/module.h"
#include "rondo/nn/ops.h"

namespace rondo::nn {

// Initializers of a linear layer's weight and bias.
struct LinearInit {
  Initializer weight;
  Initializer bias;
};
LinearInit torch_init(int64_t fan_in);
// Truncated normal with standard deviation √(1 / fan_in), bias 0.
LinearInit fan_in_init(int64_t fan_in);

// How weights of linear maps are stored for inference, packed once for our kernels. Activations
// stay fp32, whatever the CPU multiplies fastest; only with int8 are they rounded too.
enum class WeightFormat { fp32, bf16, int8 };

// y = x Wᵀ + b. Parameters: weight [out, in], bias [out] (if any).
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias, LinearInit initializers);
  Linear(int64_t in, int64_t out, bool bias) : Linear(in, out, bias, torch_init(in)) {}
  // From existing tensors; `bias` may be undefined.
  Linear(const Tensor& weight, const Tensor& bias) : weight_(weight), bias_(bias) {}
  Tensor forward(const Tensor& x, const Scope& scope, Result result = Result::stream) const;

  CompiledLinear compile(WeightPacker& packer) const;

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  LinearMap without_bias() const { return {weight_, Tensor()}; }
  LinearMap map() const { return {weight_, bias_}; }

 private:
  Tensor weight_;
  Tensor bias_;
};

class BatchNorm2d;

// Parameters: weight [out, in / groups, k, k], bias [out].
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, Convolution how);
  Tensor forward(const Tensor& x, const Scope& scope) const;

  struct CompileOptions {
    bool planar = false;  // reads images as [in, height, width] instead of channels-last
    const BatchNorm2d* norm = nullptr;  // follows, in evaluation mode, and is folded in
    bool relu = false;                  // follows the norm
  };
  // Supports one group, or as many as channels.
  CompiledConvolution compile(WeightPacker& packer, const CompileOptions& options) const;

 private:
  Convolution how_;
  Tensor weight_;
  Tensor bias_;
};

// Parameters weight, bias [channels]; buffers running_mean, running_var, num_batches_tracked.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t channels);
  // Training mode normalizes by the batch and updates the running averages with momentum 0.1,
  // reduced so that all batches of one optimizer step together have that effect.
  Tensor forward(const Tensor& x, const Scope& scope);
  void batches_per_step(int64_t batches);
  // Evaluation mode: x · scale + shift, both [channels].
  struct Scaling {
    Tensor scale, shift;
  };
  Scaling scaling() const;

 private:
  double momentum_ = 0.1;
  Tensor weight_, bias_;
  Tensor running_mean_, running_var_, num_batches_tracked_;
};

enum class NormKind { layer, rms };

// Normalizes the last dimension. Layer: weight and bias; rms: weight only, mean not removed.
class Norm : public Module {
 public:
  Norm(NormKind kind, int64_t width, double epsilon);
  Tensor forward(const Tensor& x, const Scope& scope, Result result = Result::stream) const;
  // Norm of a sum, which is returned too: one pass over memory where our kernels apply.
  NormedSum forward(const WeightedSum& sum, const Scope& scope,
                    Result result = Result::stream) const;
  CompiledNorm compile(WeightPacker& packer) const;

 private:
  NormKind kind_;
  double epsilon_;
  Tensor weight_;
  Tensor bias_;
};

// g(x) = (x downᵀ) up, without forming the product: down [r, in], up [r, out]. Starts at zero
// because `up` does. With rank 0 the map is one full matrix [in, out], also starting at zero.
class LowRank : public Module {
 public:
  LowRank(int64_t in, int64_t out, int64_t rank);
  Tensor forward(const Tensor& x, const Scope& scope) const;
  // x + g(x), where out = in.
  Tensor join(const Tensor& x, const Scope& scope) const;
  // The map as one matrix [out, in].
  Tensor matrix() const;
  // map(x) + g(x) as one linear map.
  LinearMap added_to(LinearMap map) const;
  CompiledLowRank compile(WeightPacker& packer) const;

 private:
  void report(const Tensor& x, const Scope& scope) const;

  Tensor down_;
  Tensor up_;
  Tensor full_;
};

struct FeedForwardShape {
  int64_t width = 0;
  int64_t hidden = 0;
  bool bias = true;
  Activation activation = Activation::gelu;
  double hidden_dropout = 0.0;
};

// W2 · drop(act(W1 · u + inner)), where `inner` (may be undefined) is added before the activation.
class FeedForward : public Module {
 public:
  FeedForward(const FeedForwardShape& shape, LinearInit up, LinearInit down);
  Tensor forward(const Tensor& u, const Tensor& inner, const Scope& scope) const;

  CompiledFeedForward compile(WeightPacker& packer) const;

  const Linear& up() const { return *up_; }

 private:
  FeedForwardShape shape_;
  std::shared_ptr<Linear> up_;
  std::shared_ptr<Linear> down_;
};

}  // namespace rondo::nn
