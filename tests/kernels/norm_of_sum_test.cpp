// A sum and its norm in one pass against torch's operations in double, over odd shapes, with and
// without weights of the sum; gradients when one of the two results, the other or both are used;
// identical bits with any number of threads.
#include "rondo/nn/ops.h"
#include "rondo/nn/precision.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct NormedCase {
  Shape shape;
  bool centered, weighs_x, weighs_y;
};
const NormedCase kNormedCases[] = {
    {{1, 3}, true, false, false},     {{3, 5}, false, false, false},
    {{2, 7, 64}, true, true, true},   {{17, 100}, true, true, false},
    {{5, 3, 96}, false, false, true}, {{1030, 31}, true, false, false},
    {{130, 257}, false, true, true},  {{2, 4099}, true, true, true}};

// Which results contribute to the gradient.
enum class Used { both, sum, norm };

// x, y, the norm's weight and bias, and a, b if the case has them.
std::vector<Tensor> normed_variables(const NormedCase& c, at::ScalarType type, uint64_t seed) {
  const auto noise = [](const Shape& shape, uint64_t with) {  // the same numbers for every type
    return test::noise(shape, with, at::kFloat).to(at::kDouble);
  };
  std::vector<Tensor> all = {leaf(noise(c.shape, seed) + 0.5, type),
                             leaf(noise(c.shape, seed + 1), type),
                             leaf(noise({c.shape.back()}, seed + 2) * 0.5 + 1.0, type)};
  if (c.centered) all.push_back(leaf(noise({c.shape.back()}, seed + 3), type));
  if (c.weighs_x) all.push_back(leaf(at::full({}, 0.7), type));
  if (c.weighs_y) all.push_back(leaf(at::full({}, -1.3), type));
  return all;
}

nn::NormedSum apply_normed(const NormedCase& c, const std::vector<Tensor>& v,
                           nn::Result result = nn::Result::stream) {
  size_t next = 3;
  const Tensor bias = c.centered ? v[next++] : Tensor();
  const Tensor a = c.weighs_x ? v[next++] : Tensor();
  const Tensor b = c.weighs_y ? v[next++] : Tensor();
  const nn::WeightedSum sum = {v[0], v[1], a, b};
  return c.centered ? nn::layer_norm(sum, v[2], bias, 1e-5, Scope(), result)
                    : nn::rms_norm(sum, v[2], 1e-6, Scope(), result);
}

WithGradients run_normed(const NormedCase& c, at::ScalarType type, uint64_t seed,
                         Used used = Used::both, nn::Result result = nn::Result::stream) {
  std::vector<Tensor> variables = normed_variables(c, type, seed);
  const nn::NormedSum out = apply_normed(c, variables, result);
  if (used == Used::sum) {  // the norm's weights then have no gradient
    variables.erase(variables.begin() + 2, variables.begin() + (c.centered ? 4 : 3));
    return with_gradients(out.sum, variables);
  }
  const Tensor norm = out.norm.to(out.sum.scalar_type());
  return with_gradients(used == Used::norm ? norm : at::cat({out.sum, norm}, -1), variables);
}

TEST(NormsOfSums, EqualTheDoubleReference) {
  uint64_t seed = 1;
  for (const NormedCase& c : kNormedCases) {
    for (const Used used : {Used::both, Used::sum, Used::norm}) {
      const WithGradients got = run_normed(c, at::kFloat, ++seed, used);
      const PlainKernels plain;
      const std::string what =
          std::to_string(c.shape.back()) + " used " + std::to_string(static_cast<int>(used));
      // Gradients of a and b are single sums over all numbers, in an order that compilers choose.
      expect_agreement(got, run_normed(c, at::kDouble, seed, used), 3e-5, what);
    }
  }
}

TEST(NormsOfSums, CanAnswerInBf16) {
  const nn::MixedPrecision mixed(true);
  for (const NormedCase& c : kNormedCases) {
    const std::vector<Tensor> variables = normed_variables(c, at::kFloat, 40);
    const nn::NormedSum out = apply_normed(c, variables, nn::Result::branch);
    EXPECT_EQ(out.sum.scalar_type(), at::kFloat);
    EXPECT_EQ(out.norm.scalar_type(), at::kBFloat16);
    WithGradients got = run_normed(c, at::kFloat, 40, Used::both, nn::Result::branch);
    const PlainKernels plain;
    const nn::MixedPrecision off(false);
    WithGradients want = run_normed(c, at::kDouble, 40);
    // Not those of a and b, which are single sums over all numbers: their rounding errors are as
    // large.
    for (WithGradients* all : {&got, &want}) all->gradients.resize(c.centered ? 4 : 3);
    expect_agreement(got, want, 1e-2, std::to_string(c.shape.back()));
  }
}

// One pass gives the same bits as the sum followed by its norm.
TEST(NormsOfSums, EqualTheTwoSteps) {
  const NormedCase c = {{37, 130}, true, false, false};
  const std::vector<Tensor> v = normed_variables(c, at::kFloat, 3);
  const nn::NormedSum got = apply_normed(c, v);
  const Tensor sum = nn::weighted_sum({v[0], v[1]});
  expect_identical(got.sum.detach(), sum.detach(), "sum");
  expect_identical(got.norm.detach(), nn::layer_norm(sum, v[2], v[3], 1e-5, Scope()).detach(),
                   "norm");
}

TEST(NormsOfSums, PassGradcheck) {
  for (const NormedCase& c :
       {NormedCase{{4, 6}, true, true, true}, {{4, 6}, false, false, false}}) {
    const std::vector<Tensor> variables = normed_variables(c, at::kDouble, 5);
    NamedTensors named;
    for (size_t i = 0; i < variables.size(); ++i) named[std::to_string(i)] = variables[i];
    const auto run = [&] {
      std::vector<Tensor> single;
      for (const Tensor& v : variables) single.push_back(v.to(at::kFloat));
      const nn::NormedSum out = apply_normed(c, single);
      return (out.sum * out.norm).to(at::kDouble);
    };
    gradcheck(run, named, fp32_gradcheck());
  }
}

TEST(NormsOfSums, DoNotDependOnThreadsOrGradients) {
  const NormedCase c = {{515, 129}, true, true, true};
  const WithGradients want = run_normed(c, at::kFloat, 9);
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    expect_same_bits(run_normed(c, at::kFloat, 9), want, std::to_string(threads));
  }
  const at::NoGradGuard no_grad;
  const nn::NormedSum out = apply_normed(c, normed_variables(c, at::kFloat, 9));
  expect_identical(at::cat({out.sum, out.norm}, -1), want.result);
}

// Other types, and shapes that differ, use plain operations.
TEST(NormsOfSums, TakeWhatTheKernelDoesNot) {
  const Tensor x = noise({3, 4, 8}, 1, at::kFloat);
  const Tensor y = noise({1, 4, 8}, 2, at::kFloat);
  const Tensor one = at::ones({8});
  const nn::NormedSum wide = nn::rms_norm(nn::WeightedSum{x, y}, one, 1e-6, Scope());
  expect_near(wide.sum, x + y, 1e-6);
  expect_near(wide.norm, nn::rms_norm(x + y, one, 1e-6, Scope()), 1e-6);
  const nn::NormedSum alone = nn::rms_norm(nn::WeightedSum{x}, one, 1e-6, Scope());
  expect_identical(alone.sum, x);
  expect_identical(alone.norm, nn::rms_norm(x, one, 1e-6, Scope()));
}

}  // namespace
}  // namespace rondo::test
