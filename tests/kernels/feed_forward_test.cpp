// A feed-forward layer in mixed precision against torch's operations in double: with and without
// biases, over odd shapes; gradients in place; identical bits with any number of threads.
#include "rondo/nn/gradients.h"
#include "rondo/nn/layers.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct FeedForwardCase {
  Shape u;
  int64_t hidden;
  nn::Activation activation;
  bool bias;
};
// Below 32 rows products use gemm; 700 rows are several pieces.
const FeedForwardCase kFeedForwardCases[] = {{{3, 7, 24}, 50, nn::Activation::gelu, true},
                                             {{5, 8, 24}, 50, nn::Activation::gelu, true},
                                             {{2, 21, 17}, 33, nn::Activation::relu, true},
                                             {{64, 64}, 128, nn::Activation::gelu, false},
                                             {{700, 40}, 300, nn::Activation::relu, false},
                                             {{350, 2, 16}, 1100, nn::Activation::gelu, true}};

std::shared_ptr<nn::FeedForward> drawn_feed_forward(const FeedForwardCase& c) {
  nn::FeedForwardShape shape;
  shape.width = c.u.back();
  shape.hidden = c.hidden;
  shape.bias = c.bias;
  shape.activation = c.activation;
  auto layer = std::make_shared<nn::FeedForward>(shape, nn::torch_init(shape.width),
                                                 nn::torch_init(shape.hidden));
  nn::initialize(*layer, 1);
  return layer;
}

// With the gradients of all parameters and u.
WithGradients run_layer(const FeedForwardCase& c, at::ScalarType type, bool mixed) {
  const nn::MixedPrecision precision(mixed);
  const auto layer = drawn_feed_forward(c);
  layer->to(type);
  std::vector<Tensor> variables = layer->parameters();
  variables.push_back(leaf(noise(c.u, 2), type));
  return with_gradients(layer->forward(variables.back(), Tensor(), Scope()), variables);
}

// Not for ReLU, whose gradient depends on the sign of sums that rounding may flip.
TEST(MixedFeedForward, EqualsTheDoubleReference) {
  for (const FeedForwardCase& c : kFeedForwardCases) {
    if (c.activation != nn::Activation::gelu) continue;
    const WithGradients got = run_layer(c, at::kFloat, true);
    EXPECT_EQ(got.result.scalar_type(), at::kFloat);
    const PlainKernels plain;
    expect_agreement(got, run_layer(c, at::kDouble, false), 2e-2, std::to_string(c.hidden));
  }
}

TEST(MixedFeedForward, GivesTheSameGradientsInPlace) {
  const auto gradients = [&](bool in_place) {
    const nn::MixedPrecision precision(true);
    const auto guard = in_place ? std::make_unique<nn::GradientsInPlace>() : nullptr;
    const auto layer = drawn_feed_forward(kFeedForwardCases[1]);
    Tensor y = noise(kFeedForwardCases[1].u, 1, at::kFloat);
    for (int level = 0; level < 3; ++level) y = layer->forward(y, Tensor(), Scope());
    y.sum().backward();
    std::vector<Tensor> all;
    for (const Tensor& p : layer->parameters()) all.push_back(p.grad());
    return all;
  };
  const std::vector<Tensor> got = gradients(true);
  const std::vector<Tensor> want = gradients(false);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(apart(got[i], want[i]), 1e-6) << i;
}

TEST(MixedFeedForward, DoesNotDependOnThreads) {
  for (const FeedForwardCase& c : kFeedForwardCases) {
    const auto run = [&](int threads) {
      const WithThreads with(threads);
      return run_layer(c, at::kFloat, true);
    };
    expect_same_bits(run(1), run(3), std::to_string(c.hidden));
  }
}

TEST(MixedFeedForward, LeavesAloneWhatDoesNotLearn) {
  const nn::MixedPrecision precision(true);
  const nn::GradientsInPlace in_place;
  const auto layer = drawn_feed_forward(kFeedForwardCases[1]);
  const Tensor frozen = layer->up().weight().requires_grad_(false);
  layer->forward(noise(kFeedForwardCases[1].u, 1, at::kFloat), Tensor(), Scope()).sum().backward();
  EXPECT_FALSE(frozen.grad().defined());
  EXPECT_TRUE(layer->up().bias().grad().defined());
}

}  // namespace
}  // namespace rondo::test
