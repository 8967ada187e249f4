// Gradients of the small layers, checked in double, and their results.
#include "rondo/nn/layers.h"

#include "rondo/nn/gate.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

using nn::Convolution;

TEST(LayerGradients, Linear) {
  for (const bool bias : {true, false}) {
    nn::Linear layer(5, 3, bias);
    make_generic(layer, 1);
    const Tensor x = variable({2, 4, 5}, 2);
    gradcheck([&] { return layer.forward(x, Scope()); }, with_parameters(layer, {{"x", x}}));
  }
}

struct ConvolutionCase {
  int64_t in, out, kernel;
  Convolution how;
};

TEST(LayerGradients, Conv2d) {
  const ConvolutionCase cases[] = {
      {2, 4, 3, {1, 1, 1}},  // plain
      {3, 2, 2, {2, 0, 1}},  // patches
      {2, 4, 3, {2, 1, 2}},  // between the stages of a pyramid: one group per channel
  };
  for (const ConvolutionCase& c : cases) {
    nn::Conv2d layer(c.in, c.out, c.kernel, c.how);
    make_generic(layer, 3);
    const Tensor x = variable({2, c.in, 6, 6}, 4);
    gradcheck([&] { return layer.forward(x, Scope()); }, with_parameters(layer, {{"x", x}}));
  }
}

TEST(LayerGradients, BatchNorm2d) {
  for (const bool training : {true, false}) {
    nn::BatchNorm2d layer(3);
    make_generic(layer, 5);
    layer.train(training);
    const Tensor x = variable({3, 3, 2, 2}, 6);
    gradcheck([&] { return layer.forward(x, Scope()); }, with_parameters(layer, {{"x", x}}));
  }
}

TEST(LayerGradients, Norms) {
  for (const auto kind : {nn::NormKind::layer, nn::NormKind::rms}) {
    nn::Norm layer(kind, 6, 1e-5);
    make_generic(layer, 7);
    const Tensor x = variable({2, 3, 6}, 8);
    gradcheck([&] { return layer.forward(x, Scope()); }, with_parameters(layer, {{"x", x}}));
  }
}

TEST(LayerGradients, LowRank) {
  for (const int64_t rank : {2, 0}) {
    nn::LowRank layer(5, 7, rank);
    make_generic(layer, 9);
    const Tensor x = variable({2, 3, 5}, 10);
    gradcheck([&] { return layer.forward(x, Scope()); }, with_parameters(layer, {{"x", x}}));
  }
}

nn::FeedForward small_feed_forward(nn::Activation activation, bool bias) {
  nn::FeedForwardShape shape;
  shape.width = 4;
  shape.hidden = 6;
  shape.bias = bias;
  shape.activation = activation;
  return nn::FeedForward(shape, nn::torch_init(4), nn::torch_init(6));
}

TEST(LayerGradients, FeedForward) {
  for (const auto activation : {nn::Activation::gelu, nn::Activation::relu}) {
    for (const bool signaled : {true, false}) {
      nn::FeedForward layer = small_feed_forward(activation, signaled);
      make_generic(layer, 11);
      const Tensor x = variable({2, 3, 4}, 12);
      const Tensor inner = variable({2, 3, 6}, 13);
      NamedTensors more = {{"x", x}};
      if (signaled) more["inner"] = inner;
      gradcheck([&] { return layer.forward(x, signaled ? inner : Tensor(), Scope()); },
                with_parameters(layer, more));
    }
  }
}

TEST(LayerGradients, Gates) {
  for (const auto kind : {nn::GateKind::fixed, nn::GateKind::lstm}) {
    nn::Gate gate(kind, 4, 6);
    make_generic(gate, 14);
    const Tensor c = variable({2, 3, 4}, 15);
    const Tensor z = variable({2, 3, 4}, 16);
    const Tensor h = variable({2, 3, 6}, 17);
    gradcheck([&] { return gate.forward(c, z, h, Scope()); },
              with_parameters(gate, {{"c", c}, {"z", z}, {"h", h}}));
  }
}

TEST(Layers, NormsAreTheirFormulas) {
  const Tensor x = noise({3, 5}, 1);
  nn::Norm layer(nn::NormKind::layer, 5, 0.25);
  nn::Norm rms(nn::NormKind::rms, 5, 0.25);
  make_generic(layer, 2);
  make_generic(rms, 3);
  const Tensor mean = x.mean(-1, true);
  const Tensor variance = (x - mean).square().mean(-1, true);
  const auto lp = layer.named_parameters();
  expect_near(layer.forward(x, Scope()),
              (x - mean) / (variance + 0.25).sqrt() * lp["weight"] + lp["bias"], 1e-14);
  expect_near(rms.forward(x, Scope()),
              x / (x.square().mean(-1, true) + 0.25).sqrt() * rms.named_parameters()["weight"],
              1e-14);
}

TEST(Layers, BatchNormMovesItsAveragesByATenth) {
  nn::BatchNorm2d layer(2);
  nn::initialize(layer, 1);
  const Tensor x = noise({4, 2, 3, 3}, 2, at::kFloat) * 2.0 + 1.0;
  layer.train();
  layer.forward(x, Scope());
  const auto buffers = layer.named_buffers();
  const Tensor flat = x.transpose(0, 1).flatten(1);  // [C, 36]
  expect_near(buffers["running_mean"], 0.1 * flat.mean(1), 1e-6);
  expect_near(buffers["running_var"], 0.9 + 0.1 * flat.var(1, /*unbiased=*/true), 1e-5);
  EXPECT_EQ(buffers["num_batches_tracked"].item<int64_t>(), 1);
  const Tensor before = buffers["running_mean"].clone();
  layer.eval();
  layer.forward(x, Scope());
  expect_identical(buffers["running_mean"], before, "evaluation moves nothing");
}

TEST(Layers, LowRankStartsAtZeroAndIsTheProductOfItsParts) {
  nn::LowRank low(6, 4, 2);
  nn::LowRank full(6, 4, 0);
  nn::initialize(low, 1);
  nn::initialize(full, 1);
  const Tensor x = noise({2, 6}, 3, at::kFloat);
  EXPECT_EQ(low.forward(x, Scope()).abs().max().item<float>(), 0.0F);
  EXPECT_EQ(full.forward(x, Scope()).abs().max().item<float>(), 0.0F);
  make_generic(low, 4);
  const auto p = low.named_parameters();
  const Tensor matrix = at::matmul(p["down"].t(), p["up"]);  // [6, 4], never formed by the layer
  expect_near(low.forward(x.to(at::kDouble), Scope()), at::matmul(x.to(at::kDouble), matrix),
              1e-13);
}

TEST(Layers, GatesAreTheirFormulas) {
  const Tensor c = noise({2, 4}, 1);
  const Tensor z = noise({2, 4}, 2);
  const Tensor h = noise({2, 6}, 3);
  nn::Gate fixed(nn::GateKind::fixed, 4, 6);
  nn::Gate lstm(nn::GateKind::lstm, 4, 6);
  make_generic(fixed, 4);
  make_generic(lstm, 5);
  const Tensor b = at::sigmoid(fixed.named_parameters()["bias"]);
  expect_near(fixed.forward(c, z, h, Scope()), c * b + z * (1 - b), 1e-14);
  const auto p = lstm.named_parameters();
  const Tensor forget = at::matmul(h, p["forget.weight"].t()) + p["forget.bias"];
  const Tensor input = at::matmul(h, p["input.weight"].t()) + p["input.bias"];
  expect_near(lstm.forward(c, z, h, Scope()),
              c * at::sigmoid(forget + 1) + z * at::sigmoid(input - 1), 1e-14);
}

}  // namespace
}  // namespace rondo::test
