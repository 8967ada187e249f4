// The basic operations: dropout, masking, embedding, counting, and running without memory.
#include "rondo/nn/ops.h"

#include "rondo/nn/layers.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

TEST(Dropout, KeepsTheExpectationAndIsIdentityOutsideTraining) {
  at::manual_seed(1);
  const Tensor x = at::ones({1000, 100});
  const Tensor y = nn::dropout(x, 0.3, true);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.01);
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.3, 0.01);
  const Tensor kept = y.masked_select(y.ne(0));
  expect_near(kept, at::full_like(kept, 1.0 / 0.7), 1e-6);
  EXPECT_TRUE(nn::dropout(x, 0.3, false).is_same(x));
  EXPECT_TRUE(nn::dropout(x, 0.0, true).is_same(x));
}

TEST(DropPath, DropsWholeRowsAndKeepsTheExpectation) {
  at::manual_seed(2);
  const Tensor x = noise({4000, 3, 2}, 1, at::kFloat);
  const Tensor y = nn::drop_path(x, 0.25, true);
  int64_t dropped = 0;
  for (int64_t row = 0; row < 200; ++row) {
    const bool gone = y[row].eq(0).all().item<bool>();
    if (!gone) expect_near(y[row], x[row] / 0.75, 1e-6);
  }
  dropped = y.flatten(1).eq(0).all(1).sum().item<int64_t>();
  EXPECT_NEAR(static_cast<double>(dropped) / 4000.0, 0.25, 0.03);
  EXPECT_TRUE(nn::drop_path(x, 0.25, false).is_same(x));
  EXPECT_TRUE(nn::drop_path(x, 0.0, true).is_same(x));
}

TEST(MaskedSoftmax, IsExactlyZeroWhereHidden) {
  const Tensor scores = noise({2, 3, 4}, 1) * 50.0;
  const Tensor mask =
      at::tensor({1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1}, at::kInt).view({3, 4}).to(at::kBool);
  const Tensor p = nn::softmax(scores.masked_fill(mask.logical_not(), -1e30), mask);
  EXPECT_EQ(p.masked_select(mask.logical_not()).abs().max().item<double>(), 0.0);
  expect_near(p.sum(-1), at::tensor({1.0, 0.0, 1.0}, at::kDouble).expand({2, 3}), 1e-12);
  expect_near(nn::softmax(scores, Tensor()), at::softmax(scores, -1), 0.0);
}

TEST(Embed, PicksRowsAndGivesPaddingNoGradient) {
  const Tensor table = variable({5, 3}, 1);
  const Tensor tokens = at::tensor({1, 4, 1, 2}, at::kLong).view({2, 2});
  const Tensor x = nn::embed(table, tokens, 1);
  expect_identical(x[0][1], table[4]);
  expect_identical(x[1][0], table[1]);
  x.sum().backward();
  const Tensor want = at::tensor({0.0, 0.0, 1.0, 0.0, 1.0}, at::kDouble);
  expect_identical(table.grad().select(1, 0), want);
}

TEST(Activations, AreExactGeluAndRelu) {
  const Tensor x = at::linspace(-4, 4, 33, at::kDouble);
  expect_near(nn::activate(x, nn::Activation::gelu), x * 0.5 * (1 + at::erf(x / std::sqrt(2.0))),
              1e-14);
  expect_near(nn::activate(x, nn::Activation::relu), x.clamp_min(0), 0.0);
}

// Adds up what is reported to it.
class Counter : public Observer {
 public:
  bool wants(const std::string& name) override { return name == "here.wanted"; }
  void activation(const std::string& name, const Tensor& /*value*/) override {
    seen.push_back(name);
  }
  void multiply_adds(const std::string& name, double count) override {
    names.push_back(name);
    total += count;
  }
  void normalized(const std::string& /*name*/, double elements) override { norms += elements; }
  std::vector<std::string> seen, names;
  double total = 0, norms = 0;
};

TEST(Counting, MultiplyAddsOfEveryOperation) {
  Counter counter;
  const Scope scope = Scope(&counter) / "here";
  const auto counted = [&](auto operation) {
    counter.total = 0;
    operation();
    return counter.total;
  };
  const Tensor x = at::zeros({2, 5, 3});
  EXPECT_EQ(counted([&] { nn::linear(x, at::zeros({7, 3}), Tensor(), scope); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(counted([&] { nn::matmul(x, at::zeros({2, 3, 4}), scope); }), 2 * 5 * 3 * 4);
  const Tensor image = at::zeros({1, 4, 8, 8});
  EXPECT_EQ(counted([&] {
              nn::conv2d(image, at::zeros({6, 2, 3, 3}), at::zeros({6}), {2, 1, 2}, scope);
            }),
            4 * 4 * 6 * 2 * 9);
  EXPECT_EQ(counted([&] { nn::layer_norm(x, at::ones({3}), at::zeros({3}), 1e-5, scope); }), 0);
  nn::rms_norm(x, at::ones({3}), 1e-5, scope);
  EXPECT_EQ(counter.norms, 2 * x.numel());
  EXPECT_EQ(counter.names.front(), "here");
}

TEST(Counting, WalkingWithoutMemoryGivesTheSameShapesAndCounts) {
  nn::FeedForwardShape shape;
  shape.width = 6;
  shape.hidden = 10;
  Counter real, walked;
  Tensor made;
  {
    nn::FeedForward layer(shape, nn::torch_init(6), nn::torch_init(10));
    nn::initialize(layer, 1);
    made = layer.forward(at::zeros({2, 3, 6}), Tensor(), Scope(&real));
  }
  const nn::ShapesOnly shapes_only;
  const nn::FeedForward layer(shape, nn::torch_init(6), nn::torch_init(10));
  const Tensor meta = at::empty({2, 3, 6}, at::TensorOptions(at::kMeta));
  const Tensor shaped = layer.forward(meta, Tensor(), Scope(&walked));
  EXPECT_EQ(shaped.sizes(), made.sizes());
  EXPECT_EQ(walked.total, real.total);
  EXPECT_EQ(walked.names, real.names);
}

TEST(Probe, OffersNamedActivationsOnlyToThoseWhoWantThem) {
  Counter counter;
  const Scope scope = Scope(&counter) / std::string("here");
  EXPECT_TRUE(scope.wants("wanted"));
  EXPECT_FALSE((scope / 3).wants("wanted"));
  scope.record("wanted", at::zeros({1}));
  scope.record("other", at::zeros({1}));
  Scope().record("wanted", at::zeros({1}));
  EXPECT_EQ(counter.seen, std::vector<std::string>{"here.wanted"});
  EXPECT_FALSE((Scope() / "a" / 1 / std::string("b")).watched());
}

}  // namespace
}  // namespace rondo::test
