// Fused bias and activation against torch's operations in double, over odd shapes; gradients; bf16;
// the same bits with any number of threads; the feed-forward layer that uses them.
#include "rondo/kernels/activation.h"

#include "rondo/nn/layers.h"
#include "rondo/nn/precision.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

WithGradients run_activation_case(const Tensor& x, const Tensor& bias, nn::Activation activation,
                                  at::ScalarType type) {
  std::vector<Tensor> variables = {leaf(x, type)};
  if (bias.defined()) {
    variables.push_back(leaf(bias, type == at::kDouble ? at::kDouble : at::kFloat));
  }
  const Tensor y = nn::activate(variables[0], activation, bias.defined() ? variables[1] : Tensor());
  EXPECT_EQ(y.scalar_type(), type);
  return with_gradients(y, variables);
}

void compare_activations(at::ScalarType type, double tolerance) {
  uint64_t seed = 1;
  for (const Shape& shape : std::vector<Shape>{{1},
                                               {7},
                                               {3, 5},
                                               {2, 7, 64},
                                               {1030, 31},
                                               {130, 257},
                                               {3, 4099},
                                               {2, 3, 5, 7},
                                               {40, 1024}}) {
    for (const bool biased : {true, false}) {
      for (const nn::Activation activation : {nn::Activation::gelu, nn::Activation::relu}) {
        const Tensor x = (noise(shape, seed) * 2.0).to(type).to(at::kDouble);
        const Tensor bias =
            biased ? noise({shape.back()}, seed + 1).to(at::kFloat).to(at::kDouble) : Tensor();
        ++seed;
        const WithGradients got = run_activation_case(x, bias, activation, type);
        const PlainKernels plain;
        expect_agreement(got, run_activation_case(x, bias, activation, at::kDouble), tolerance,
                         std::to_string(x.numel()) + (biased ? " with bias" : ""));
      }
    }
  }
}

TEST(FusedActivations, EqualTheDoubleReference) { compare_activations(at::kFloat, 1e-5); }

TEST(FusedActivations, EqualItInBf16) { compare_activations(at::kBFloat16, 1e-2); }

TEST(FusedActivations, AreExactOverTheWholeLine) {
  const Tensor x = at::linspace(-12, 12, 100001, at::kDouble).to(at::kFloat);
  const Tensor wide = x.to(at::kDouble);
  const Tensor want = wide * 0.5 * (1 + at::erf(wide / std::sqrt(2.0)));
  expect_near(nn::activate(x, nn::Activation::gelu), want, 1.5e-6);
  const WithGradients got = run_activation_case(x, Tensor(), nn::Activation::gelu, at::kFloat);
  const Tensor direction = noise({100001}, 77, at::kFloat).to(at::kDouble);
  const Tensor slope = 0.5 * (1 + at::erf(wide / std::sqrt(2.0))) +
                       wide * (wide.square() * -0.5).exp() / std::sqrt(2.0 * M_PI);
  expect_near(got.gradients[0], slope * direction, 3e-6);
}

TEST(FusedActivations, PassGradcheck) {
  const Tensor x = variable({4, 6}, 1);
  const Tensor bias = variable({6}, 2);
  const auto run = [&] {
    return nn::activate(x.to(at::kFloat), nn::Activation::gelu, bias.to(at::kFloat))
        .to(at::kDouble);
  };
  gradcheck(run, {{"x", x}, {"bias", bias}}, fp32_gradcheck());
}

TEST(FusedActivations, DoNotDependOnThreads) {
  const Tensor x = noise({515, 129}, 1);
  const Tensor bias = noise({129}, 2);
  const auto run = [&] { return run_activation_case(x, bias, nn::Activation::gelu, at::kFloat); };
  const WithGradients want = run();
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    expect_same_bits(run(), want, std::to_string(threads));
  }
}

TEST(FusedActivations, DoNotHideStrangeNumbers) {
  for (const nn::Activation activation : {nn::Activation::gelu, nn::Activation::relu}) {
    Tensor x = at::ones({2, 20});
    x[1][3] = NAN;
    x[1][4] = INFINITY;
    x[1][5] = -INFINITY;
    const Tensor y = nn::activate(x, activation, at::zeros({20}));
    EXPECT_TRUE(y[1][3].isnan().item<bool>());
    EXPECT_TRUE(y[1][4].isinf().item<bool>());
    EXPECT_TRUE(y[0].isfinite().all().item<bool>());
  }
}

// ---- in the feed-forward layer ----------------------------------------------------------------

class UpCounter : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& name, double count) override { counts[name] += count; }
  std::map<std::string, double> counts;
};

TEST(FusedFeedForward, EqualsPlainAndCountsTheSame) {
  for (const bool biased : {true, false}) {
    for (const nn::Activation activation : {nn::Activation::gelu, nn::Activation::relu}) {
      nn::FeedForwardShape shape;
      shape.width = 24;
      shape.hidden = 50;
      shape.bias = biased;
      shape.activation = activation;
      nn::FeedForward layer(shape, nn::torch_init(24), nn::torch_init(50));
      nn::initialize(layer, 1);
      const Tensor u = noise({3, 7, 24}, 2, at::kFloat).requires_grad_(true);
      const Tensor inner = noise({3, 7, 50}, 3, at::kFloat);
      const auto run = [&](UpCounter& counter) {
        std::vector<Tensor> variables = layer.parameters();
        variables.push_back(u);
        return with_gradients(layer.forward(u, inner, Scope(&counter)), variables);
      };
      UpCounter fused_count;
      UpCounter plain_count;
      const WithGradients got = run(fused_count);
      const PlainKernels plain;
      expect_agreement(got, run(plain_count), 1e-5, biased ? "bias" : "no bias");
      EXPECT_EQ(fused_count.counts, plain_count.counts);
      EXPECT_EQ(fused_count.counts.size(), 2U);
    }
  }
}

TEST(FusedFeedForward, CompiledEqualsPlainInEveryFormat) {
  nn::FeedForwardShape shape;
  shape.width = 32;
  shape.hidden = 70;
  nn::FeedForward layer(shape, nn::torch_init(32), nn::torch_init(70));
  nn::initialize(layer, 1);
  const at::NoGradGuard no_grad;
  const PlainKernels plain;
  for (const bool int8 : {false, true}) {
    nn::WeightPacker packer(kernels::PackedFormat::fp32, int8);
    const nn::CompiledFeedForward compiled = layer.compile(packer);
    for (const int64_t rows : {1, 5, 50}) {
      const Tensor u = noise({rows, 32}, 2, at::kFloat);
      nn::RowBuffer in, hidden;
      in.resize(rows, 32);
      hidden.resize(rows, 70);
      for (int64_t r = 0; r < rows; ++r) std::copy_n(u[r].data_ptr<float>(), 32, in.rows(rows)[r]);
      compiled.hidden(in.rows(rows), {}, hidden.rows(rows), kernels::Member());
      const nn::Rows h = hidden.rows(rows);
      const Tensor got =
          through(compiled.down, at::from_blob(h.data, {rows, 70}, {h.stride, 1}, at::kFloat));
      EXPECT_LE(apart(got, layer.forward(u, Tensor(), Scope())), int8 ? 2e-2 : 1e-5) << rows;
    }
  }
}

}  // namespace
}  // namespace rondo::test
