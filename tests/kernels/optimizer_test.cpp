// Fused optimizer steps against the same steps by torch operations, over odd shapes; sums that do
// not depend on the number of threads; a scale that is folded in.
#include "rondo/kernels/optimizer.h"

#include "rondo/train/optimizer.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

using Parameters = std::vector<std::pair<std::string, Tensor>>;

// Every kind of parameter: scalars, vectors, matrices that are factored either way or not at all, a
// kernel with two long dimensions, several pieces of work, one that is not contiguous.
const std::vector<Shape>& optimizer_shapes() {
  static const std::vector<Shape> shapes = {{1},         {7},        {16385},         {3, 5},
                                            {128, 300},  {301, 129}, {127, 400},      {1, 1000},
                                            {2, 3, 130}, {1100, 64}, {130, 129, 2, 1}};
  return shapes;
}

struct Trained {
  Parameters parameters;
  NamedTensors moments;
};

Trained five_steps(const OptimizerConfig& config, double scale) {
  Trained t;
  uint64_t seed = 1;
  for (const Shape& shape : optimizer_shapes()) {
    t.parameters.emplace_back("map" + std::to_string(seed), noise(shape, seed, at::kFloat));
    ++seed;
  }
  t.parameters.emplace_back("turned", noise({140, 150}, seed, at::kFloat).t());
  const auto optimizer = make_optimizer(config, t.parameters);
  for (int64_t step = 1; step <= 5; ++step) {
    for (auto& [name, value] : t.parameters) {
      const Tensor g = noise(value.sizes().vec(), ++seed + 100, at::kFloat);
      value.mutable_grad() = g * (0.01 * static_cast<double>(step) / scale);
    }
    optimizer->step(step, 0.01, scale);
  }
  for (const auto& [name, moment] : optimizer->moments()) t.moments[name] = moment;
  return t;
}

void expect_same_training(const Trained& got, const Trained& want, double tolerance,
                          const std::string& what) {
  for (size_t i = 0; i < want.parameters.size(); ++i) {
    EXPECT_LE(apart(got.parameters[i].second, want.parameters[i].second), tolerance)
        << what << " " << want.parameters[i].first;
  }
  for (const auto& [name, moment] : want.moments) {
    EXPECT_LE(apart(got.moments.at(name), moment), 10 * tolerance) << what << " " << name;
  }
}

TEST(FusedOptimizers, EqualTorchOperations) {
  for (const char* kind : {"adam", "adamw", "adafactor"}) {
    for (const double beta1 : {0.9, 0.0}) {
      OptimizerConfig config;
      config.kind = kind;
      config.beta1 = beta1;
      config.weight_decay = 0.1;
      const Trained fused = five_steps(config, 1.0);
      const Trained scaled = five_steps(config, 1.0 / 64);
      const PlainKernels plain;
      const Trained want = five_steps(config, 1.0);
      const std::string what = kind + (" " + std::to_string(beta1));
      expect_same_training(fused, want, 2e-6, what);
      expect_same_training(scaled, want, 2e-6, what + ", scaled");
      expect_same_training(five_steps(config, 1.0 / 64), want, 2e-6, what + ", plain and scaled");
    }
  }
}

TEST(FusedOptimizers, DoNotDependOnThreads) {
  for (const char* kind : {"adamw", "adafactor"}) {
    OptimizerConfig config;
    config.kind = kind;
    const Trained want = five_steps(config, 0.5);
    for (const int threads : {1, 2, 3}) {
      const WithThreads with(threads);
      // Adafactor's means are torch's, whose order of adding follows the threads.
      expect_same_training(five_steps(config, 0.5), want, config.kind == "adamw" ? 0.0 : 1e-6,
                           kind);
    }
  }
}

TEST(SumOfSquares, IsExactAndIndependentOfThreads) {
  for (const int64_t count : {0, 1, 15, 16, 17, 16384, 16385, 400001}) {
    const Tensor x = noise({count}, 3, at::kFloat);
    const Tensor y =
        noise({count / 2}, 4, at::kFloat) * 1e20;  // whose squares exceed the range of floats
    const std::vector<kernels::Floats> parts = {{x.data_ptr<float>(), x.numel()},
                                                {y.data_ptr<float>(), y.numel()}};
    const double want = x.to(at::kDouble).square().sum().item<double>() +
                        y.to(at::kDouble).square().sum().item<double>();
    const double got = kernels::sum_of_squares(parts);
    EXPECT_NEAR(got, want, 1e-13 * want) << count;
    for (const int threads : {1, 2, 3}) {
      const WithThreads with(threads);
      EXPECT_EQ(kernels::sum_of_squares(parts), got) << count;
    }
  }
}

}  // namespace
}  // namespace rondo::test
