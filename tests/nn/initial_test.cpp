// The initializers of parameters, and that a drawn value depends only on seed and name.
#include <cmath>

#include "rondo/nn/layers.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

// One tensor of one initializer.
class Drawn : public nn::Module {
 public:
  Drawn(const Shape& shape, nn::Initializer initializer, const std::string& name = "value") {
    value = parameter(name, shape, initializer);
  }
  Tensor value;
};

Tensor draw(nn::Initializer initializer, uint64_t seed = 1, const Shape& shape = {400, 500}) {
  Drawn drawn(shape, initializer);
  nn::initialize(drawn, seed);
  return drawn.value.detach().to(at::kDouble);
}

void expect_moments(const Tensor& value, double mean, double deviation) {
  const double count = static_cast<double>(value.numel());
  EXPECT_NEAR(value.mean().item<double>(), mean, 5.0 * deviation / std::sqrt(count));
  EXPECT_NEAR(value.std().item<double>(), deviation, 5.0 * deviation / std::sqrt(count));
}

TEST(InitialLaws, Constant) {
  const Tensor value = draw(nn::constant(0.25));
  EXPECT_EQ(value.min().item<double>(), 0.25);
  EXPECT_EQ(value.max().item<double>(), 0.25);
}

TEST(InitialLaws, Normal) {
  const Tensor value = draw(nn::normal(0.02));
  expect_moments(value, 0.0, 0.02);
  const double fourth = value.div(0.02).pow(4).mean().item<double>();
  EXPECT_NEAR(fourth, 3.0, 0.2);  // a normal's kurtosis
}

TEST(InitialLaws, Uniform) {
  for (const auto& [initializer, bound] :
       {std::make_pair(nn::uniform(0.3), 0.3),
        std::make_pair(nn::xavier_uniform(30, 20), std::sqrt(6.0 / 50)),
        std::make_pair(nn::xavier_uniform(30, 20, 0.5), 0.5 * std::sqrt(6.0 / 50)),
        std::make_pair(nn::torch_default(16), 0.25)}) {
    const Tensor value = draw(initializer);
    expect_moments(value, 0.0, bound / std::sqrt(3.0));
    EXPECT_LE(value.abs().max().item<double>(), bound * (1 + 1e-6));
    EXPECT_GT(value.max().item<double>(), 0.999 * bound);
    EXPECT_LT(value.min().item<double>(), -0.999 * bound);
  }
}

TEST(InitialLaws, TruncatedNormalIsCutAtTwoSigmaAndKeepsItsDeviation) {
  const double deviation = 0.125;
  const Tensor value = draw(nn::truncated_normal(deviation), 3, {1000, 1000});
  const double parent = deviation / 0.87962566103423978;
  expect_moments(value, 0.0, deviation);
  EXPECT_LE(value.abs().max().item<double>(), 2.0 * parent * (1 + 1e-6));
  EXPECT_GT(value.abs().max().item<double>(), 1.99 * parent);
  // P(|z| < 1) of a unit normal cut at 2.
  const double inside = value.abs().lt(parent).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(inside, std::erf(1 / std::sqrt(2.0)) / std::erf(2 / std::sqrt(2.0)), 3e-3);
}

TEST(InitialLaws, TheZeroRowIsZeroAndTheRestIsNot) {
  nn::Initializer initializer = nn::normal(1.0);
  initializer.zero_row = 2;
  const Tensor value = draw(initializer, 1, {4, 8});
  EXPECT_EQ(value[2].abs().max().item<double>(), 0.0);
  for (const int64_t row : {0, 1, 3}) EXPECT_GT(value[row].abs().min().item<double>(), 0.0);
}

// Two parameters, declared in either order.
class Pair : public nn::Module {
 public:
  explicit Pair(bool reversed) {
    const auto add = [&](const char* name) {
      register_module(name, std::make_shared<nn::Linear>(4, 3, true));
    };
    add(reversed ? "second" : "first");
    add(reversed ? "first" : "second");
  }
};

TEST(InitialValues, DependOnSeedAndNameButNotOnOrder) {
  Pair one(false), other(true), another_seed(false);
  nn::initialize(one, 7);
  nn::initialize(other, 7);
  nn::initialize(another_seed, 8);
  const auto a = one.named_parameters();
  const auto b = other.named_parameters();
  const auto c = another_seed.named_parameters();
  for (const auto& item : a) {
    expect_identical(item.value(), b[item.key()], item.key());
    EXPECT_FALSE(item.value().equal(c[item.key()])) << item.key();
  }
  EXPECT_FALSE(a["first.weight"].equal(a["second.weight"]))
      << "equal shape and initializer, other name";
}

TEST(InitialValues, DoNotTouchTorchsOwnGenerator) {
  Pair pair(false);
  at::manual_seed(5);
  const Tensor before = at::rand({4});
  at::manual_seed(5);
  nn::initialize(pair, 1);
  expect_identical(at::rand({4}), before);
}

TEST(CounterGenerator, IsAFunctionOfSeedPurposeAndIndex) {
  const auto sample = [](uint64_t seed, const std::string& purpose, uint64_t index) {
    return at::rand({8}, nn::counter_generator(seed, purpose, index), at::kFloat);
  };
  expect_identical(sample(1, "a", 0), sample(1, "a", 0));
  for (const Tensor& other : {sample(2, "a", 0), sample(1, "b", 0), sample(1, "a", 1)}) {
    EXPECT_FALSE(other.equal(sample(1, "a", 0)));
  }
}

TEST(ShapesOnly, GivesShapesWithoutMemoryWhileItLives) {
  {
    const nn::ShapesOnly outer;
    { const nn::ShapesOnly inner; }
    const nn::Linear huge(1 << 20, 1 << 20, false);  // 4 TiB if it existed
    const Tensor weight = huge.named_parameters()["weight"];
    EXPECT_TRUE(weight.is_meta());
    EXPECT_EQ(weight.numel(), int64_t{1} << 40);
  }
  const nn::Linear real(2, 2, true);
  EXPECT_FALSE(real.named_parameters()["weight"].is_meta());
}

}  // namespace
}  // namespace rondo::test
