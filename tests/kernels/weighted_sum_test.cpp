// Weighted sums against torch's operations in double, over odd shapes; gradients; bf16; identical
// bits with any number of threads.
#include "rondo/kernels/weighted_sum.h"

#include "rondo/nn/ops.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct SumCase {
  Shape shape;
  bool weighs_x, weighs_y;
};
const SumCase kSumCases[] = {{{1}, true, true},          {{7, 3}, true, false},
                             {{2, 65, 17}, false, true}, {{5, 8191}, true, true},
                             {{3, 8192}, true, true},    {{40, 1024}, false, false}};

WithGradients run_sum(const SumCase& c, const Tensor& x, const Tensor& y, at::ScalarType type,
                      at::ScalarType y_type) {
  std::vector<Tensor> variables = {leaf(x, type), leaf(y, y_type)};
  const Tensor a = leaf(at::full({}, 0.7), type);
  const Tensor b = leaf(at::full({}, -1.3), type);
  if (c.weighs_x) variables.push_back(a);
  if (c.weighs_y) variables.push_back(b);
  const Tensor sum = nn::weighted_sum(
      {variables[0], variables[1], c.weighs_x ? a : Tensor(), c.weighs_y ? b : Tensor()});
  EXPECT_EQ(sum.scalar_type(), type);
  return with_gradients(sum, variables);
}

void compare_sums(at::ScalarType y_type, double tolerance) {
  uint64_t seed = 1;
  for (const SumCase& c : kSumCases) {
    const Tensor x = noise(c.shape, ++seed).to(at::kFloat).to(at::kDouble);
    const Tensor y = noise(c.shape, ++seed).to(y_type).to(at::kDouble);
    const WithGradients got = run_sum(c, x, y, at::kFloat, y_type);
    const PlainKernels plain;
    expect_agreement(got, run_sum(c, x, y, at::kDouble, at::kDouble), tolerance,
                     std::to_string(x.numel()));
  }
}

TEST(WeightedSums, EqualTheDoubleReference) { compare_sums(at::kFloat, 1e-5); }

TEST(WeightedSums, EqualItInBf16) { compare_sums(at::kBFloat16, 1e-2); }

TEST(WeightedSums, TakeWhatDoesNotLieInOnePiece) {
  const Tensor x = noise({6, 5}, 1, at::kFloat).t();
  const Tensor y = noise({5, 6}, 2, at::kFloat);
  expect_near(nn::weighted_sum({x, y, at::full({}, 2.0F)}), x * 2 + y, 1e-6);
}

TEST(WeightedSums, PassGradcheck) {
  const Tensor x = variable({4, 6}, 1);
  const Tensor y = variable({4, 6}, 2);
  const Tensor a = variable({}, 3);
  const Tensor b = variable({}, 4);
  const auto run = [&] {
    return nn::weighted_sum(
               {x.to(at::kFloat), y.to(at::kFloat), a.to(at::kFloat), b.to(at::kFloat)})
        .to(at::kDouble);
  };
  gradcheck(run, {{"x", x}, {"y", y}, {"a", a}, {"b", b}}, fp32_gradcheck());
}

TEST(WeightedSums, DoNotDependOnThreads) {
  const SumCase c = {{515, 129}, true, true};
  const Tensor x = noise(c.shape, 1);
  const Tensor y = noise(c.shape, 2);
  const auto run = [&] { return run_sum(c, x, y, at::kFloat, at::kFloat); };
  const WithGradients want = run();
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    expect_same_bits(run(), want, std::to_string(threads));
  }
}

}  // namespace
}  // namespace rondo::test
