// Linear maps by oneDNN's gemm against products in double, forward and backward.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "rondo/kernels/gemm.h"
#include "rondo/nn/fused_linear.h"
#include "rondo/nn/gradients.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/module.h"
#include "rondo/nn/ops.h"
#include "rondo/nn/precision.h"
#include "tests/support/expect.h"

namespace rondo {
namespace {

struct LinearCase {
  Shape x;
  int64_t out;
  bool bias;
};

const LinearCase kLinearCases[] = {
    {{1, 1}, 1, false},     {{3, 7}, 5, true},          {{2, 9, 16}, 33, true},
    {{64, 64}, 64, false},  {{4, 31, 130}, 257, true},  {{5, 300}, 300, true},
    {{1, 256}, 1024, true}, {{2, 3, 5, 17}, 19, false}, {{0, 8}, 4, true},
};

Tensor drawn_for_linear(const Shape& shape, const char* purpose) {
  return at::randn(shape, nn::counter_generator(9, purpose));
}

// Largest difference relative to the largest value.
double linear_apart(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return 0.0;
  const Tensor wide = b.to(at::kDouble);
  const double most = std::max(1e-6, wide.abs().max().item<double>());
  return (a.to(at::kDouble) - wide).abs().max().item<double>() / most;
}

struct LinearPass {
  Tensor y, dx, dw, db;
};

LinearPass pass_linear(const LinearCase& c, at::ScalarType type, bool mixed) {
  const nn::MixedPrecision precision(mixed);
  Tensor x = drawn_for_linear(c.x, "x").to(type).requires_grad_();
  Tensor w = drawn_for_linear({c.out, c.x.back()}, "w").to(type).requires_grad_();
  Tensor b;
  if (c.bias) b = drawn_for_linear({c.out}, "b").to(type).requires_grad_();
  const Tensor y = nn::linear(x, w, b, Scope());
  (y * drawn_for_linear(y.sizes().vec(), "dy")).sum().backward();
  return {y.detach(), x.grad(), w.grad(), c.bias ? b.grad() : Tensor()};
}

void expect_same_pass(const LinearPass& got, const LinearPass& wanted, double tolerance) {
  EXPECT_LE(linear_apart(got.y, wanted.y), tolerance);
  EXPECT_LE(linear_apart(got.dx, wanted.dx), tolerance);
  EXPECT_LE(linear_apart(got.dw, wanted.dw), tolerance);
  ASSERT_EQ(got.db.defined(), wanted.db.defined());
  if (got.db.defined()) {
    EXPECT_LE(linear_apart(got.db, wanted.db), tolerance);
  }
}

TEST(FusedLinear, EqualsProductsInDouble) {
  for (const LinearCase& c : kLinearCases) {
    SCOPED_TRACE(c.out);
    expect_same_pass(pass_linear(c, at::kFloat, false), pass_linear(c, at::kDouble, false), 2e-6);
  }
}

TEST(FusedLinear, Bf16IsCloseAndGivesFp32) {
  for (const LinearCase& c : kLinearCases) {
    SCOPED_TRACE(c.out);
    const LinearPass got = pass_linear(c, at::kFloat, true);
    EXPECT_EQ(got.y.scalar_type(), at::kFloat);
    EXPECT_EQ(got.dw.scalar_type(), at::kFloat);
    expect_same_pass(got, pass_linear(c, at::kDouble, false), 2e-2);
  }
}

TEST(FusedLinear, Bf16EqualsRoundedFactors) {
  for (const LinearCase& c : kLinearCases) {
    SCOPED_TRACE(c.out);
    const Tensor got = pass_linear(c, at::kFloat, true).y;
    nn::use_kernels(nn::Kernels::reference);
    const Tensor plain = pass_linear(c, at::kFloat, true).y;
    nn::use_kernels(nn::Kernels::fused);
    EXPECT_LE(linear_apart(got, plain), 1e-5);
  }
}

// ---- several maps of one input, branches in bf16 ------------------------------------------------

struct MapsPass {
  std::vector<Tensor> results, gradients;  // of x, weights, biases, parts of low rank
};

// For x: three maps, the first with a low-rank part, the last with a bias; the second result is not
// used.
MapsPass pass_maps(int64_t rows, at::ScalarType type, bool mixed, nn::Result result,
                   bool together) {
  const nn::MixedPrecision precision(mixed);
  const Tensor x = drawn_for_linear({rows, 24}, "x").to(type).requires_grad_();
  std::vector<nn::LinearMap> maps;
  std::vector<Tensor> variables = {x};
  for (const int64_t out : {40, 7, 33}) {
    const Tensor w = drawn_for_linear({out, 24}, "w").to(type).requires_grad_();
    maps.push_back({w, Tensor()});
    if (out != 7) variables.push_back(w);
  }
  maps[2].bias = drawn_for_linear({33}, "b").to(type).requires_grad_();
  variables.push_back(maps[2].bias);
  maps[0].up = drawn_for_linear({5, 40}, "up").to(type).requires_grad_();
  maps[0].down = drawn_for_linear({5, 24}, "down").to(type).requires_grad_();
  variables.insert(variables.end(), {maps[0].up, maps[0].down});
  MapsPass pass;
  if (together) {
    pass.results = nn::fused_linears(x, maps, mixed, result);
  } else {
    for (const nn::LinearMap& map : maps) {
      pass.results.push_back(nn::linear(x, map.matrix(), map.bias, Scope()));
    }
  }
  const auto weighed = [&](size_t i) {
    const Tensor y = pass.results[i];
    return (y.to(type) * drawn_for_linear(y.sizes().vec(), "dy").to(type)).sum();
  };
  pass.gradients = torch::autograd::grad({weighed(0) + weighed(2)}, variables);
  return pass;
}

void expect_same_maps(const MapsPass& got, const MapsPass& wanted, double tolerance) {
  for (size_t i = 0; i < wanted.results.size(); ++i) {
    EXPECT_LE(linear_apart(got.results[i], wanted.results[i]), tolerance) << "result " << i;
  }
  ASSERT_EQ(got.gradients.size(), wanted.gradients.size());
  for (size_t i = 0; i < wanted.gradients.size(); ++i) {
    EXPECT_LE(linear_apart(got.gradients[i], wanted.gradients[i]), tolerance) << "gradient " << i;
  }
}

TEST(FusedLinears, EqualMapsOneByOne) {
  for (const int64_t rows : {1, 5, 31, 64, 301}) {
    SCOPED_TRACE(rows);
    const MapsPass want = pass_maps(rows, at::kDouble, false, nn::Result::stream, false);
    expect_same_maps(pass_maps(rows, at::kFloat, false, nn::Result::branch, true), want, 2e-6);
    const MapsPass stream = pass_maps(rows, at::kFloat, true, nn::Result::stream, true);
    const MapsPass branch = pass_maps(rows, at::kFloat, true, nn::Result::branch, true);
    EXPECT_EQ(stream.results[0].scalar_type(), at::kFloat);
    EXPECT_EQ(branch.results[0].scalar_type(), at::kBFloat16);
    expect_same_maps(stream, want, 2e-2);
    expect_same_maps(branch, want, 2e-2);
  }
}

TEST(FusedLinears, GradientOfABranchIsABranch) {
  const nn::MixedPrecision mixed(true);
  const Tensor x = drawn_for_linear({40, 16}, "x").to(at::kBFloat16).requires_grad_();
  const Tensor w = drawn_for_linear({8, 16}, "w").requires_grad_();
  nn::linear(x, w, Tensor(), Scope()).sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  EXPECT_EQ(w.grad().scalar_type(), at::kFloat);
  EXPECT_LE(linear_apart(x.grad(), w.detach().sum(0).expand({40, 16})), 2e-2);
}

TEST(FusedLinears, RoundedWeightsFollowTheirWeights) {
  const nn::MixedPrecision mixed(true);
  Tensor w = drawn_for_linear({8, 16}, "w").requires_grad_();
  const Tensor once = nn::bf16_weight(w);
  EXPECT_TRUE(nn::bf16_weight(w).is_same(once));
  {
    const at::NoGradGuard no_grad;
    w.add_(1.0);
  }
  test::expect_identical(nn::bf16_weight(w), w.detach().to(at::kBFloat16), "after a change");
  const nn::MixedPrecision off(false);
  EXPECT_FALSE(nn::bf16_weight(w).is_same(nn::bf16_weight(w)));
}

TEST(GradientsInPlace, AreTheSame) {
  for (const bool bf16 : {false, true}) {
    const auto gradient = [&](bool in_place) {
      const nn::MixedPrecision mixed(bf16);
      const auto guard = in_place ? std::make_unique<nn::GradientsInPlace>() : nullptr;
      const Tensor x = drawn_for_linear({50, 16}, "x");
      const Tensor w = drawn_for_linear({16, 16}, "w").requires_grad_();
      Tensor y = x;
      nn::LinearMap map = {w, Tensor()};
      for (int level = 0; level < 4; ++level) {
        if (level == 2) {  // the rest with a part of low rank
          map.up = drawn_for_linear({3, 16}, "up");
          map.down = drawn_for_linear({3, 16}, "down");
        }
        y = nn::linear(y, map, Scope());
      }
      (y.sum() + w.square().sum()).backward();  // also used elsewhere
      return w.grad();
    };
    EXPECT_LE(linear_apart(gradient(true), gradient(false)), 1e-6);
  }
}

TEST(FusedLinear, LeavesItsInputsAlone) {
  for (const int64_t rows : {1, 2}) {
    const Tensor x = drawn_for_linear({rows, 8}, "x");
    const Tensor w = drawn_for_linear({16, 8}, "w");
    const Tensor b = drawn_for_linear({16}, "b");
    const Tensor before = b.clone();
    const Tensor first = nn::linear(x, w, b, Scope());
    test::expect_identical(b, before, "bias");
    test::expect_identical(nn::linear(x, w, b, Scope()), first, "the same again");
  }
}

TEST(FusedLinear, IsUsed) {
  const Tensor x = at::ones({2, 3});
  EXPECT_TRUE(nn::linear_is_fused(x, at::ones({4, 3})));
  EXPECT_FALSE(nn::linear_is_fused(x.to(at::kDouble), at::ones({4, 3}, at::kDouble)));
  nn::use_kernels(nn::Kernels::reference);
  EXPECT_FALSE(nn::linear_is_fused(x, at::ones({4, 3})));
  nn::use_kernels(nn::Kernels::fused);
}

TEST(FusedLinear, MatmulWithAMatrixGoesTheSameWay) {
  const Tensor a = drawn_for_linear({3, 5, 12}, "a");
  const Tensor b = drawn_for_linear({12, 7}, "b");
  EXPECT_LE(
      linear_apart(nn::matmul(a, b, Scope()), at::matmul(a.to(at::kDouble), b.to(at::kDouble))),
      2e-6);
}

}  // namespace
}  // namespace rondo
