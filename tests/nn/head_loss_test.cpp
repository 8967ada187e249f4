// Head and loss computed over pieces of rows against the direct way, which keeps all logits.
#include "rondo/nn/head_loss.h"

#include "rondo/nn/allocator.h"
#include "rondo/nn/loss.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct HeadCase {
  int64_t rows, width, classes;
  bool bias;
  double scale, smoothing;
};

// Fewer rows than a piece, exactly one, several with a rest.
const HeadCase kHeadCases[] = {
    {1, 3, 2, false, 1.0, 0.0},      {7, 5, 33, true, 1.0, 0.1},
    {61, 16, 130, false, 0.25, 0.1}, {2048, 8, 19, true, 1.0, 0.0},
    {2500, 8, 51, true, 0.5, 0.1},   {600, 16, 20000, false, 0.125, 0.05},
};

Tensor head_labels(const HeadCase& c) {
  Tensor labels = at::arange(c.rows, at::kLong).mul(7).remainder(c.classes);
  labels.masked_fill_(at::arange(c.rows, at::kLong).remainder(5).eq(3), -1);
  return labels;
}

// The loss, and the gradients of 3 · loss, so that a factor arrives in the backward pass.
WithGradients pass_head(const HeadCase& c, bool pieces, bool bf16, at::ScalarType type) {
  const nn::MixedPrecision mixed(bf16);
  const Tensor x = leaf(noise({c.rows, c.width}, 1, at::kFloat), type);
  nn::Head head;
  head.map.weight = leaf(noise({c.classes, c.width}, 2, at::kFloat), type);
  if (c.bias) head.map.bias = leaf(noise({c.classes}, 3, at::kFloat), type);
  head.scale = c.scale;
  const Tensor labels = head_labels(c);
  Tensor loss;
  if (pieces) {
    loss = nn::head_cross_entropy_sum(x, head, labels, c.smoothing);
  } else {
    Tensor logits = at::matmul(x, head.map.weight.t()) * c.scale;
    if (c.bias) logits = logits + head.map.bias;
    loss = nn::cross_entropy_sum(logits, labels, c.smoothing);
  }
  std::vector<Tensor> variables = {x, head.map.weight};
  if (c.bias) variables.push_back(head.map.bias);
  return with_gradients(loss * 3.0, variables);
}

TEST(HeadLoss, EqualsThePlainWay) {
  for (const HeadCase& c : kHeadCases) {
    SCOPED_TRACE(c.rows);
    WithGradients plain;
    {
      const PlainKernels reference;
      plain = pass_head(c, false, false, at::kDouble);
      expect_agreement(pass_head(c, true, false, at::kDouble), plain, 1e-12, "reference");
    }
    expect_agreement(pass_head(c, true, false, at::kFloat), plain, 1e-5, "fp32");
    expect_agreement(pass_head(c, true, true, at::kFloat), plain, 2e-2, "bf16");
  }
}

TEST(HeadLoss, WithoutGradientsIsTheSameNumber) {
  const HeadCase c = kHeadCases[4];
  const Tensor with = pass_head(c, true, false, at::kFloat).result;
  const at::NoGradGuard no_grad;
  nn::Head head;
  head.map = {noise({c.classes, c.width}, 2, at::kFloat), noise({c.classes}, 3, at::kFloat)};
  head.scale = c.scale;
  const Tensor x = noise({c.rows, c.width}, 1, at::kFloat);
  const Tensor loss = nn::head_cross_entropy_sum(x, head, head_labels(c), c.smoothing);
  expect_identical(loss * 3.0, with, "loss");
}

TEST(HeadLoss, NeverHoldsAllLogits) {
  if (!nn::install_allocator()) GTEST_SKIP() << "not under AddressSanitizer";
  const int64_t rows = 4096;
  const int64_t classes = 8192;
  const auto peak_of = [&](bool pieces) {
    const Tensor x = at::ones({rows, 16}).requires_grad_();
    nn::Head head;
    head.map.weight = at::ones({classes, 16}).requires_grad_();
    const Tensor labels = at::zeros({rows}, at::kLong);
    nn::watch_memory();
    const size_t before = nn::memory_use().in_use;
    const Tensor loss =
        pieces ? nn::head_cross_entropy_sum(x, head, labels, 0.0)
               : nn::cross_entropy_sum(at::matmul(x, head.map.weight.t()), labels, 0.0);
    loss.backward();
    return nn::memory_use().watched - before;
  };
  const auto all_logits = static_cast<size_t>(rows * classes * 4);
  EXPECT_GE(peak_of(false), all_logits);
  EXPECT_LE(peak_of(true), all_logits / 4);
}

}  // namespace
}  // namespace rondo::test
