// Fused layer norm and RMS norm against torch's operations in double, over odd shapes; gradients;
// bf16 rows; identical bits with any number of threads.
#include "rondo/kernels/norm.h"

#include "rondo/nn/fused_ops.h"
#include "rondo/nn/ops.h"
#include "rondo/nn/precision.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct NormCase {
  Tensor x, weight, bias;  // bias undefined: RMS norm
};

NormCase norm_case(const Shape& shape, bool centered, uint64_t seed) {
  NormCase c;
  c.x = noise(shape, seed) * 2.0 + 0.7;
  c.weight = noise({shape.back()}, seed + 1) * 0.5 + 1.0;
  if (centered) c.bias = noise({shape.back()}, seed + 2);
  return c;
}

Tensor apply_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? nn::layer_norm(x, weight, bias, 1e-5, Scope())
                        : nn::rms_norm(x, weight, 1e-6, Scope());
}

// In fp32, in bf16 with fp32 weights, or all in double.
WithGradients run_norm_case(const NormCase& c, at::ScalarType type) {
  const at::ScalarType weights = type == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor x = leaf(c.x, type);
  std::vector<Tensor> variables = {x, leaf(c.weight, weights)};
  if (c.bias.defined()) variables.push_back(leaf(c.bias, weights));
  return with_gradients(apply_norm(x, variables[1], c.bias.defined() ? variables[2] : Tensor()),
                        variables);
}

const std::vector<Shape>& norm_shapes() {
  static const std::vector<Shape> shapes = {{1, 2},     {3, 5},     {1, 1, 33},  {2, 7, 64},
                                            {17, 100},  {5, 3, 96}, {1030, 31},  {130, 257},
                                            {70, 1000}, {2, 4099},  {4, 4, 4, 8}};
  return shapes;
}

TEST(FusedNorms, EqualTheDoubleReference) {
  uint64_t seed = 1;
  for (const Shape& shape : norm_shapes()) {
    for (const bool centered : {true, false}) {
      const NormCase c = norm_case(shape, centered, seed++);
      const WithGradients got = run_norm_case(c, at::kFloat);
      EXPECT_EQ(got.result.scalar_type(), at::kFloat);
      const std::string what = std::to_string(shape.back()) + (centered ? " layer" : " rms");
      const PlainKernels plain;
      expect_agreement(got, run_norm_case(c, at::kDouble), 1e-5, what);
      expect_agreement(got, run_norm_case(c, at::kFloat), 1e-5, what);
    }
  }
}

TEST(FusedNorms, TakeBf16RowsInMixedPrecision) {
  const nn::MixedPrecision mixed(true);
  uint64_t seed = 50;
  for (const Shape& shape : norm_shapes()) {
    for (const bool centered : {true, false}) {
      NormCase c = norm_case(shape, centered, seed++);
      c.x = c.x.to(at::kBFloat16).to(at::kDouble);  // the same numbers for both
      const WithGradients got = run_norm_case(c, at::kBFloat16);
      EXPECT_EQ(got.result.scalar_type(), at::kFloat);
      EXPECT_EQ(got.gradients[0].scalar_type(), at::kBFloat16);
      EXPECT_EQ(got.gradients[1].scalar_type(), at::kFloat);
      const PlainKernels plain;
      const nn::MixedPrecision off(false);
      expect_agreement(got, run_norm_case(c, at::kDouble), 1e-2, std::to_string(shape.back()));
    }
  }
}

TEST(FusedNorms, CanAnswerInBf16) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    NormCase c = norm_case({37, 130}, true, 5);
    c.x = c.x.to(at::kBFloat16).to(at::kDouble);
    const std::vector<Tensor> variables = {leaf(c.x, type), leaf(c.weight, at::kFloat),
                                           leaf(c.bias, at::kFloat)};
    nn::FusedNorm how;
    how.epsilon = 1e-5;
    how.result = at::kBFloat16;
    const Tensor y = nn::fused_norm(variables[0], variables[1], variables[2], how);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    const PlainKernels plain;
    expect_agreement(with_gradients(y, variables), run_norm_case(c, at::kDouble), 1e-2, "bf16");
  }
}

TEST(FusedNorms, PassGradcheck) {
  for (const bool centered : {true, false}) {
    const Tensor x = variable({4, 6}, 1);
    const Tensor weight = variable({6}, 2);
    const Tensor bias = centered ? variable({6}, 3) : Tensor();
    NamedTensors variables = {{"x", x}, {"weight", weight}};
    if (centered) variables["bias"] = bias;
    gradcheck(
        [&] {
          return apply_norm(x.to(at::kFloat), weight.to(at::kFloat),
                            centered ? bias.to(at::kFloat) : Tensor())
              .to(at::kDouble);
        },
        variables, fp32_gradcheck());
  }
}

TEST(FusedNorms, DoNotDependOnThreadsOrGradients) {
  const NormCase c = norm_case({515, 129}, true, 9);
  const WithGradients want = run_norm_case(c, at::kFloat);
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    expect_same_bits(run_norm_case(c, at::kFloat), want, std::to_string(threads));
  }
  const at::NoGradGuard no_grad;
  expect_identical(apply_norm(c.x.to(at::kFloat), c.weight.to(at::kFloat), c.bias.to(at::kFloat)),
                   want.result);
}

TEST(FusedNorms, ConstantRowsAndStrangeNumbers) {
  const Tensor one = at::ones({8});
  const Tensor flat = at::full({2, 8}, 3.0);
  EXPECT_EQ(nn::layer_norm(flat, one, at::zeros({8}), 1e-5, Scope()).abs().max().item<float>(),
            0.0F);
  EXPECT_EQ(nn::rms_norm(at::zeros({2, 8}), one, 1e-6, Scope()).abs().max().item<float>(), 0.0F);
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    Tensor x = at::ones({2, 8});
    x[0][3] = bad;
    const Tensor y = nn::layer_norm(x, one, one, 1e-5, Scope());
    EXPECT_FALSE(y[0].isfinite().all().item<bool>()) << "must not be hidden";
    EXPECT_TRUE(y[1].isfinite().all().item<bool>());
  }
}

// Rows of length 1, and of heads as projections store them.
TEST(UnitNorm, EqualsPlainOperations) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 5, 3, 7}, Shape{3, 33, 4, 64}}) {
    for (const bool heads_first : {false, true}) {
      const auto pass = [&](at::ScalarType type) {
        const Tensor x = leaf(noise(shape, 5, at::kFloat), type);
        return with_gradients(nn::unit_norm(heads_first ? x.transpose(1, 2) : x, 1e-3), {x});
      };
      const WithGradients want = pass(at::kDouble);
      expect_agreement(pass(at::kFloat), want, 1e-5, "fp32");
      const nn::MixedPrecision mixed(true);
      const WithGradients rounded = pass(at::kBFloat16);
      EXPECT_EQ(rounded.result.scalar_type(), at::kBFloat16);
      expect_agreement(rounded, want, 2e-2, "bf16");
    }
  }
}

}  // namespace
}  // namespace rondo::test
