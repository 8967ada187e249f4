// Soft distillation against the SReT authors' own loss and its gradient.
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/loss.h"
#include "tests/support/expect.h"
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

TEST(SoftDistillation, IsTheAuthorsLossWithItsGradient) {
  const Reference reference("kd_loss");
  const Tensor student = reference["student"].clone().requires_grad_();
  const auto rows = static_cast<double>(student.size(0));
  // Theirs is the mean over the batch; ours is a sum, which training divides by all its examples.
  const Tensor loss = nn::soft_distillation(student, reference["teacher"]) / rows;
  EXPECT_NEAR(loss.item<double>(), reference["loss"].item<double>(), 1e-6);
  loss.backward();
  expect_near(student.grad(), reference["grad_student"], 1e-7);
}

}  // namespace
}  // namespace rondo::test
