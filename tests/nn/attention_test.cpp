// Attention: gradients with every option, masks that hide all keys, projections with hooks.
#include "rondo/nn/attention.h"

#include <cmath>

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 3, kKeys = 4, kHead = 3;

struct AttendInputs {
  Tensor q = variable({kBatch, kHeads, kQueries, kHead}, 1);
  Tensor k = variable({kBatch, kHeads, kKeys, kHead}, 2);
  Tensor v = variable({kBatch, kHeads, kKeys, kHead}, 3);
  Tensor scale = variable({kHeads}, 4);
  Tensor bias = variable({kHeads, kQueries, kKeys}, 5);
};

// Row 1 of the queries sees no keys in the first example; the others see some.
Tensor partial_mask() {
  Tensor mask = noise({kBatch, 1, kQueries, kKeys}, 6).gt(-0.3);
  mask[0][0][1].fill_(false);
  mask[1][0][0].fill_(true);
  return mask;
}

TEST(AttendGradients, EveryCombinationOfOptions) {
  for (int choice = 0; choice < 16; ++choice) {
    AttendInputs in;
    NamedTensors variables = {{"q", in.q}, {"k", in.k}, {"v", in.v}};
    nn::AttendOptions how;
    if ((choice & 1) != 0) variables["scale"] = how.scale = in.scale;
    if ((choice & 2) != 0) variables["bias"] = how.bias = in.bias;
    if ((choice & 4) != 0) how.mask = partial_mask();
    if ((choice & 8) != 0) how.factor = 0.4;
    SCOPED_TRACE(choice);
    gradcheck([&] { return nn::attend(in.q, in.k, in.v, how, false, Scope()); }, variables);
  }
}

TEST(Attend, IsSoftmaxOfScaledBiasedScores) {
  const at::NoGradGuard no_grad;
  const AttendInputs in;
  nn::AttendOptions how;
  how.factor = 0.7;
  how.scale = in.scale;
  how.bias = in.bias;
  how.mask = partial_mask();
  const Tensor y = nn::attend(in.q, in.k, in.v, how, false, Scope());
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kQueries; ++i) {
        Tensor sum = at::zeros({kHead}, at::kDouble);
        double total = 0.0;
        for (int64_t j = 0; j < kKeys; ++j) {
          if (!how.mask[b][0][i][j].item<bool>()) continue;
          const double dot = (in.q[b][h][i] * in.k[b][h][j]).sum().item<double>();
          const double score =
              (0.7 * dot + in.bias[h][i][j].item<double>()) * in.scale[h].item<double>();
          total += std::exp(score);
          sum = sum + in.v[b][h][j] * std::exp(score);
        }
        expect_near(y[b][h][i], total == 0.0 ? sum : sum / total, 1e-12);
      }
    }
  }
}

TEST(Attend, AQueryThatSeesNothingGivesExactlyZeroAndFiniteGradients) {
  for (const bool everywhere : {false, true}) {
    AttendInputs in;
    nn::AttendOptions how;
    how.bias = in.bias;
    how.mask = partial_mask();
    if (everywhere) how.mask.fill_(false);
    const Tensor y = nn::attend(in.q, in.k, in.v, how, false, Scope());
    EXPECT_EQ(y[0].select(1, 1).abs().max().item<double>(), 0.0);
    y.square().sum().backward();
    for (const Tensor& leaf : {in.q, in.k, in.v, in.bias}) {
      EXPECT_TRUE(leaf.grad().isfinite().all().item<bool>());
    }
    EXPECT_EQ(in.q.grad()[0].select(1, 1).abs().max().item<double>(), 0.0);
    EXPECT_EQ(in.q.grad().abs().max().item<double>() == 0.0, everywhere);
  }
}

TEST(Attend, HiddenKeysDoNotMatterAtAll) {
  const at::NoGradGuard no_grad;
  const AttendInputs in;
  nn::AttendOptions how;
  how.mask = at::ones({kQueries, kKeys}, at::kBool);
  how.mask.select(1, 2).fill_(false);
  const Tensor before = nn::attend(in.q, in.k, in.v, how, false, Scope());
  Tensor k = in.k.clone();
  Tensor v = in.v.clone();
  k.select(2, 2).mul_(1e6);
  v.select(2, 2).mul_(1e6);
  expect_identical(nn::attend(in.q, k, v, how, false, Scope()), before);
}

TEST(Attend, DropsProbabilitiesOnlyInTraining) {
  const at::NoGradGuard no_grad;
  const AttendInputs in;
  nn::AttendOptions how;
  const Tensor plain = nn::attend(in.q, in.k, in.v, how, true, Scope());
  how.dropout = 0.5;
  expect_identical(nn::attend(in.q, in.k, in.v, how, false, Scope()), plain);
  at::manual_seed(1);
  EXPECT_FALSE(nn::attend(in.q, in.k, in.v, how, true, Scope()).equal(plain));
}

TEST(Heads, SplitAndMergeAreInverse) {
  const Tensor x = noise({2, 5, 6}, 1);
  const Tensor heads = nn::split_heads(x, 3);
  EXPECT_EQ(heads.sizes().vec(), (Shape{2, 3, 5, 2}));
  expect_identical(heads[1][2][4], x[1][4].narrow(0, 4, 2));
  expect_identical(nn::merge_heads(heads), x);
}

// y = W u + x W': not a linear map of u alone.
class AddsStream : public nn::LinearHook {
 public:
  Tensor forward(const nn::Linear& map, const Tensor& u, const Tensor& x,
                 const Scope& scope) const override {
    return map.forward(u, scope) + at::matmul(x, at::ones({5, 6}));
  }
  nn::LinearMap as_map(const nn::Linear& /*map*/, const Tensor& /*u*/, const Tensor& /*x*/,
                       const Scope& /*scope*/) const override {
    return {};
  }
};

TEST(Projections, AHookTakesThePlaceOfItsMapAlone) {
  // Heads · head width (6) differs from the stream's width (5).
  nn::Projections projections({5, 2, 3, true, nn::torch_init(5), nn::torch_init(6)});
  nn::initialize(projections, 1);
  const Tensor u = noise({2, 3, 5}, 2).to(at::kFloat);
  const Tensor x = noise({2, 3, 5}, 3).to(at::kFloat);
  const auto plain = projections.heads_of(u, x, {}, Scope());
  const AddsStream hook;
  nn::ProjectionHooks hooks;
  hooks.key = &hook;
  const auto hooked = projections.heads_of(u, x, hooks, Scope());
  const Tensor added = nn::split_heads(at::matmul(x, at::ones({5, 6})), 2);
  expect_near(hooked.q, plain.q, 1e-6);
  expect_near(hooked.k, plain.k + added, 1e-5);
  expect_near(hooked.v, plain.v, 1e-6);
}

}  // namespace
}  // namespace rondo::test
