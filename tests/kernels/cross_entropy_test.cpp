// Cross-entropy against torch's in double: labels, smoothing, ignored rows, soft targets, odd
// shapes, bf16 logits, hidden classes, huge logits; gradients; identical bits with any number of
// threads.
#include "rondo/kernels/cross_entropy.h"

#include "rondo/model/network.h"
#include "rondo/nn/loss.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct LossCase {
  Tensor logits;   // [N, V]
  Tensor labels;   // [N], some ignored
  Tensor targets;  // [N, V]
  double smoothing = 0.0;
};

std::vector<LossCase> loss_cases(at::ScalarType type) {
  std::vector<LossCase> cases;
  uint64_t seed = 1;
  for (const Shape& shape : std::vector<Shape>{{1, 1},
                                               {1, 2},
                                               {3, 5},
                                               {17, 33},
                                               {64, 1000},
                                               {5, 1024},
                                               {9, 1025},
                                               {70, 4097},
                                               {2, 33000}}) {
    for (const double smoothing : {0.0, 0.1}) {
      LossCase c;
      c.logits = (noise(shape, seed) * 4.0).to(type).to(at::kDouble);
      c.labels = at::arange(shape[0], at::kLong).mul(7919).remainder(shape[1]);
      if (shape[0] > 2) c.labels[1] = -1;
      c.targets = at::softmax(noise(shape, seed + 1), -1).to(at::kFloat).to(at::kDouble) * 1.5;
      c.smoothing = smoothing;
      cases.push_back(c);
      ++seed;
    }
  }
  return cases;
}

WithGradients label_loss(const LossCase& c, at::ScalarType type) {
  const Tensor logits = leaf(c.logits, type);
  return with_gradients(nn::cross_entropy_sum(logits, c.labels, c.smoothing), {logits});
}

WithGradients target_loss(const LossCase& c, at::ScalarType type) {
  const Tensor logits = leaf(c.logits, type);
  const Tensor targets = c.targets.to(type == at::kDouble ? at::kDouble : at::kFloat);
  return with_gradients(nn::soft_cross_entropy(logits, targets), {logits});
}

void compare_losses(at::ScalarType type, double tolerance) {
  for (const LossCase& c : loss_cases(type)) {
    const WithGradients by_label = label_loss(c, type);
    const WithGradients by_target = target_loss(c, type);
    EXPECT_EQ(by_label.result.scalar_type(), at::kFloat);
    EXPECT_EQ(by_label.gradients[0].scalar_type(), type);
    const std::string what = std::to_string(c.logits.size(0)) + " of " +
                             std::to_string(c.logits.size(1)) + ", smoothing " +
                             std::to_string(c.smoothing);
    const PlainKernels plain;
    expect_agreement(by_target, target_loss(c, at::kDouble), tolerance, what + ", targets");
    // With one class the loss is zero, and any rounding is infinite relative to it.
    if (c.logits.size(1) > 1) {
      expect_agreement(by_label, label_loss(c, at::kDouble), tolerance, what);
    } else {
      EXPECT_LE(std::abs(by_label.result.item<double>()), 1e-6);
    }
  }
}

TEST(CrossEntropy, EqualsTheDoubleReference) { compare_losses(at::kFloat, 3e-5); }

TEST(CrossEntropy, EqualsItForBf16Logits) { compare_losses(at::kBFloat16, 1e-2); }

TEST(CrossEntropy, PassesGradcheck) {
  const Tensor x = variable({5, 7}, 1);
  const Tensor labels = at::tensor({0, 6, -1, 3, 3}, at::kLong);
  const Tensor targets = at::softmax(noise({5, 7}, 2, at::kFloat), -1);
  gradcheck([&] { return nn::cross_entropy_sum(x.to(at::kFloat), labels, 0.1).to(at::kDouble); },
            {{"logits", x}}, fp32_gradcheck());
  gradcheck([&] { return nn::soft_cross_entropy(x.to(at::kFloat), targets).to(at::kDouble); },
            {{"logits", x}}, fp32_gradcheck());
}

TEST(CrossEntropy, DoesNotDependOnThreads) {
  for (const LossCase& c : loss_cases(at::kFloat)) {
    const WithGradients want = label_loss(c, at::kFloat);
    for (const int threads : {1, 2, 3}) {
      const WithThreads with(threads);
      expect_same_bits(label_loss(c, at::kFloat), want, std::to_string(threads));
    }
  }
}

TEST(CrossEntropy, HugeLogitsAndHiddenClasses) {
  LossCase c;
  c.logits =
      at::tensor({1e4, 1e4 - 1, -1e4, 5.0, -3e38, 0.0, 2.0, -INFINITY}, at::kDouble).view({2, 4});
  c.labels = at::tensor({1, 2}, at::kLong);
  c.targets = at::tensor({0.5, 0.5, 0.0, 0.0, 0.25, 0.5, 0.25, 0.0}, at::kDouble).view({2, 4});
  const WithGradients got = label_loss(c, at::kFloat);
  {
    const PlainKernels plain;
    expect_agreement(got, label_loss(c, at::kDouble), 1e-5, "labels");
  }
  EXPECT_EQ(got.gradients[0][1][3].item<float>(), 0.0F) << "a hidden class gets nothing";
  EXPECT_EQ(got.gradients[0][0][2].item<float>(), 0.0F);
}

// The trainer skips a step whose loss is not finite, so it must not become finite.
TEST(CrossEntropy, DoesNotHideStrangeNumbers) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    for (const int64_t place : {0, 15, 16, 1500, 2999}) {
      Tensor x = noise({3, 3000}, 1, at::kFloat);
      x[1][place] = bad;
      const Tensor labels = at::tensor({5, 7, 9}, at::kLong);
      EXPECT_FALSE(nn::cross_entropy_sum(x, labels, 0.0).isfinite().item<bool>()) << place;
      EXPECT_FALSE(nn::cross_entropy_sum(x.to(at::kBFloat16), labels, 0.0).isfinite().item<bool>());
      EXPECT_FALSE(nn::soft_cross_entropy(x, at::ones({3, 3000})).isfinite().item<bool>());
    }
  }
}

TEST(CrossEntropy, IgnoresNothingButWhatIsIgnored) {
  const Tensor x = noise({4, 9}, 1, at::kFloat).requires_grad_(true);
  const LossSum none = sum_cross_entropy(x, at::full({4}, -1, at::kLong));
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.sum.item<float>(), 0.0F);
  none.sum.backward();
  EXPECT_EQ(x.grad().abs().max().item<float>(), 0.0F);
  const LossSum padded = sum_cross_entropy(x, at::tensor({2, 0, 2, 5}, at::kLong), /*ignored=*/2);
  const LossSum kept = sum_cross_entropy(x.index_select(0, at::tensor({1, 3}, at::kLong)),
                                         at::tensor({0, 5}, at::kLong));
  EXPECT_EQ(padded.count, 2);
  expect_near(padded.sum, kept.sum, 1e-6);
}

}  // namespace
}  // namespace rondo::test
