// Signals merged into the shared weights for a call with many tokens: same output, same gradients.
#include <gtest/gtest.h>

#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/tensor_file.h"
#include "rondo/recurrence/ring.h"
#include "tests/support/expect.h"

namespace rondo {
namespace {

struct ProjectedWith {
  Tensor output;
  NamedTensors gradients;
};

ProjectedWith project_with(nn::Kernels kernels, int64_t rank, const Tensor& start) {
  const int64_t width = 8;
  nn::AttentionShape shape;
  shape.width = width;
  shape.heads = 2;
  shape.head_width = 4;
  shape.input = nn::torch_init(width);
  shape.output = nn::torch_init(width);
  nn::Projections projections(shape);
  const auto low_rank = std::make_shared<nn::LowRank>(width, width, rank);
  nn::LowRank& signal = *low_rank;
  nn::initialize(projections, 1);
  nn::initialize(signal, 2);
  {
    const at::NoGradGuard no_grad;  // signals start at zero: make them non-zero
    for (auto& item : signal.named_parameters()) {
      item.value().copy_(at::randn(item.value().sizes(), nn::counter_generator(3, item.key())));
    }
  }
  const SignalledMap query(low_rank, SignalPlace::after);
  nn::ProjectionHooks hooks;
  hooks.query = &query;
  const Tensor x = start.clone().requires_grad_();
  nn::use_kernels(kernels);
  const Tensor y = projections.query(x, x, hooks, Scope());
  nn::use_kernels(nn::Kernels::fused);
  (y * at::arange(y.numel()).view(y.sizes()).sin()).sum().backward();
  ProjectedWith got;
  got.output = y.detach();
  got.gradients["x"] = x.grad();
  for (const auto& item : signal.named_parameters()) {
    got.gradients["signal." + item.key()] = item.value().grad();
  }
  for (const auto& item : projections.named_parameters()) {
    if (item.value().grad().defined()) got.gradients[item.key()] = item.value().grad();
  }
  return got;
}

TEST(MergedSignals, EqualSignalsApart) {
  // [2, 9, 8]: 18 tokens, more than twice the width
  const Tensor x = at::randn({2, 9, 8}, nn::counter_generator(4, "tokens"));
  for (const int64_t rank : {0, 1, 3}) {
    const ProjectedWith merged = project_with(nn::Kernels::fused, rank, x);
    const ProjectedWith apart = project_with(nn::Kernels::reference, rank, x);
    test::expect_near(merged.output, apart.output, 1e-5, "output");
    ASSERT_EQ(merged.gradients.size(), apart.gradients.size());
    ASSERT_GE(merged.gradients.size(), 4U);
    for (const auto& [name, gradient] : apart.gradients) {
      test::expect_near(merged.gradients.at(name), gradient, 1e-4, name);
    }
  }
}

}  // namespace
}  // namespace rondo
