// A map of low rank joined to its input, against torch's operations in double, over odd shapes; its
// gradients; bf16; gradients in place; weights that do not learn.
#include "rondo/nn/fused_low_rank.h"

#include "rondo/nn/gradients.h"
#include "rondo/nn/ops.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct LowRankCase {
  Shape x;
  int64_t rank;
};
const LowRankCase kLowRankCases[] = {{{1, 1}, 1},   {{3, 7}, 2},       {{2, 9, 16}, 5},
                                     {{64, 64}, 4}, {{5, 31, 40}, 33}, {{4, 70, 130}, 32},
                                     {{0, 8}, 3},   {{33, 512}, 32}};

WithGradients run_low_rank_sum(const LowRankCase& c, at::ScalarType type, bool mixed,
                               nn::Result result) {
  const nn::MixedPrecision precision(mixed);
  const std::vector<Tensor> variables = {leaf(noise(c.x, 1), type),
                                         leaf(noise({c.rank, c.x.back()}, 2) * 0.3, type),
                                         leaf(noise({c.rank, c.x.back()}, 3) * 0.3, type)};
  const Tensor sum = nn::low_rank_sum(variables[0], variables[1], variables[2], Scope(), result);
  const bool rounded = mixed && result == nn::Result::branch;
  EXPECT_EQ(sum.scalar_type(), rounded ? at::kBFloat16 : type);
  return with_gradients(sum, variables);
}

void compare_low_rank_sums(bool mixed, nn::Result result, double tolerance) {
  for (const LowRankCase& c : kLowRankCases) {
    const WithGradients got = run_low_rank_sum(c, at::kFloat, mixed, result);
    const PlainKernels plain;
    expect_agreement(got, run_low_rank_sum(c, at::kDouble, false, nn::Result::stream), tolerance,
                     std::to_string(c.rank) + " of " + std::to_string(c.x.back()));
  }
}

TEST(LowRankSums, EqualTheDoubleReference) {
  compare_low_rank_sums(false, nn::Result::stream, 1e-5);
}
TEST(LowRankSums, EqualItInMixedPrecision) {
  compare_low_rank_sums(true, nn::Result::stream, 2e-2);
}
TEST(LowRankSums, EqualItAsABranch) { compare_low_rank_sums(true, nn::Result::branch, 2e-2); }

TEST(LowRankSums, LeaveTheirInputExactInMixedPrecision) {
  const nn::MixedPrecision mixed(true);
  const Tensor x = noise({40, 16}, 1, at::kFloat);
  const Tensor none = at::zeros({3, 16});
  expect_identical(nn::low_rank_sum(x, none, none, Scope()), x, "nothing is added");
}

TEST(LowRankSums, PassGradcheck) {
  const Tensor x = variable({4, 6}, 1);
  const Tensor down = variable({2, 6}, 2);
  const Tensor up = variable({2, 6}, 3);
  const auto run = [&] {
    const auto in = [](const Tensor& t) { return t.to(at::kFloat); };
    return nn::low_rank_sum(in(x), in(down), in(up), Scope()).to(at::kDouble);
  };
  gradcheck(run, {{"x", x}, {"down", down}, {"up", up}}, fp32_gradcheck());
}

TEST(LowRankSums, GiveTheSameGradientsInPlace) {
  for (const bool mixed : {false, true}) {
    const auto gradients = [&](bool in_place) {
      const nn::MixedPrecision precision(mixed);
      const auto guard = in_place ? std::make_unique<nn::GradientsInPlace>() : nullptr;
      const Tensor down = leaf(noise({3, 16}, 2), at::kFloat);
      const Tensor up = leaf(noise({3, 16}, 3), at::kFloat);
      Tensor y = noise({50, 16}, 1, at::kFloat);
      for (int level = 0; level < 3; ++level) y = nn::low_rank_sum(y, down, up, Scope());
      y.sum().backward();
      return std::make_pair(down.grad(), up.grad());
    };
    const auto got = gradients(true);
    const auto want = gradients(false);
    EXPECT_LE(apart(got.first, want.first), 1e-6);
    EXPECT_LE(apart(got.second, want.second), 1e-6);
  }
}

TEST(LowRankSums, LeaveAloneWhatDoesNotLearn) {
  const nn::GradientsInPlace in_place;
  const Tensor x = leaf(noise({5, 8}, 1), at::kFloat);
  const Tensor down = noise({2, 8}, 2, at::kFloat);
  const Tensor up = leaf(noise({2, 8}, 3), at::kFloat);
  nn::low_rank_sum(x, down, up, Scope()).sum().backward();
  EXPECT_FALSE(down.grad().defined());
  EXPECT_TRUE(up.grad().defined());
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace rondo::test
