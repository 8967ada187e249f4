// The small parts with weights: linear map, convolution, norms, feed-forward, low-rank map.
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
// Truncated normal of deviation √(1 / fan_in), bias 0.
LinearInit fan_in_init(int64_t fan_in);

// How weights of linear maps are kept for inference, packed for our kernels once and for all.
// Activations stay fp32, whatever the CPU multiplies best: with int8 alone they are rounded too.
enum class WeightFormat { fp32, bf16, int8 };

// y = x Wᵀ + b. Parameters: weight [out, in], bias [out] (if any).
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias, LinearInit initializers);
  Linear(int64_t in, int64_t out, bool bias) : Linear(in, out, bias, torch_init(in)) {}
  // Of tensors there are already; `bias` may be undefined.
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
    bool planar = false;  // it reads images as [in, height, width], not pixel by pixel
    const BatchNorm2d* norm = nullptr;  // follows, in evaluation mode, and is folded in
    bool relu = false;                  // follows after that
  };
  // One group, or as many as channels.
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
  // Training mode normalizes by the batch and moves the running averages by 0.1, or by so much
  // less that all batches of one optimizer step together move them by that.
  Tensor forward(const Tensor& x, const Scope& scope);
  void batches_per_step(int64_t batches);
  // In evaluation mode it is x · scale + shift, both [channels].
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

// Normalizes the last dimension. Layer: weight and bias; rms: weight only, no mean removed.
class Norm : public Module {
 public:
  Norm(NormKind kind, int64_t width, double epsilon);
  Tensor forward(const Tensor& x, const Scope& scope, Result result = Result::stream) const;
  // Of a sum, which is given too: both in one pass over memory where our kernels can.
  NormedSum forward(const WeightedSum& sum, const Scope& scope,
                    Result result = Result::stream) const;
  CompiledNorm compile(WeightPacker& packer) const;

 private:
  NormKind kind_;
  double epsilon_;
  Tensor weight_;
  Tensor bias_;
};

// g(x) = (x downᵀ) up, the product never formed: down [r, in], up [r, out]. Starts at zero because
// `up` does. With rank 0 the map is one full matrix [in, out], also starting at zero.
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

// W2 · drop(act(W1 · u + inner)), where `inner` (may be undefined) joins before the activation.
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
