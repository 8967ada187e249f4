// Levels recomputed in the backward pass: same outputs, same gradients, same random draws.
#include "rondo/nn/recompute.h"

#include "rondo/recurrence/stack.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

TEST(Recompute, KeepsValueAndGradients) {
  const Tensor x = variable({3, 4}, 1);
  const Tensor w = variable({4, 4}, 2);
  const nn::Piece piece = [&](const Tensor& in) { return at::matmul(in, w).tanh(); };
  const Tensor plain = piece(x);
  (plain * plain).sum().backward();
  const Tensor x_grad = x.grad().clone();
  const Tensor w_grad = w.grad().clone();
  x.mutable_grad().zero_();
  w.mutable_grad().zero_();
  const Tensor again = nn::recompute_in_backward(x, piece, piece);
  expect_identical(again.detach(), plain.detach());
  (again * again).sum().backward();
  expect_near(x.grad(), x_grad, 1e-14);
  expect_near(w.grad(), w_grad, 1e-14);
}

struct TrainingStep {
  Tensor logits;
  NamedTensors gradients;
};

// One training pass with dropout, recomputing every `every` levels (0: none).
TrainingStep train_once(const ModelConfig& config, int64_t every) {
  const TinyModel m(config);
  m.network->train();
  for (const auto& module : m.network->modules(/*include_self=*/false)) {
    if (auto* stack = dynamic_cast<Stack*>(module.get())) stack->recompute_every(every);
  }
  at::manual_seed(5);
  TrainingStep step;
  step.logits = m.logits(tiny_inputs(config, 2, 3, 14));
  (step.logits * noise(step.logits.sizes().vec(), 4, at::kFloat)).sum().backward();
  for (const auto& item : m.network->named_parameters()) {
    step.gradients[item.key()] = item.value().grad().defined() ? item.value().grad() : Tensor();
  }
  return step;
}

class RecomputedModel : public ::testing::TestWithParam<const char*> {};

TEST_P(RecomputedModel, TrainsAsIfEverythingWereKept) {
  const ModelConfig config = shrink(find_model(GetParam()).config());
  const TrainingStep kept = train_once(config, 0);
  for (const int64_t every : {1, 3}) {
    const TrainingStep again = train_once(config, every);
    expect_identical(again.logits, kept.logits);
    for (const auto& [name, gradient] : kept.gradients) {
      ASSERT_EQ(again.gradients.at(name).defined(), gradient.defined()) << name;
      if (!gradient.defined()) continue;
      const double largest = gradient.abs().max().item<double>();
      expect_near(again.gradients.at(name), gradient, 1e-5 * largest + 1e-6, name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, RecomputedModel,
                         ::testing::Values("ringformer/image-small", "ringformer/image-small-uit",
                                           "sret/t", "sret/deit-t-external", "sret/deep-108-mixed",
                                           "sret/mt-wmt-recursive-lrc", "brt/slide-12l",
                                           "brt/rec-fixed-skip", "brt/rec-lstm-single",
                                           "brt/memorizing-32k", "rondo/ring-brt"),
                         NameOfModel());

}  // namespace
}  // namespace rondo::test
