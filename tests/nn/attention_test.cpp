// Attention: gradients with every option, masks that hide everything, projections with signals.
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

// Row 1 of the queries sees nothing at all in the first example; the rest see some keys.
Tensor partial_mask() {
  Tensor visible = noise({kBatch, 1, kQueries, kKeys}, 6).gt(-0.3);
  visible[0][0][1].fill_(false);
  visible[1][0][0].fill_(true);
  return visible;
}

TEST(AttendGradients, EveryCombinationOfOptions) {
  for (int choice = 0; choice < 16; ++choice) {
    AttendInputs in;
    NamedTensors variables = {{"q", in.q}, {"k", in.k}, {"v", in.v}};
    nn::AttendOptions how;
    if ((choice & 1) != 0) variables["scale"] = how.scale = in.scale;
    if ((choice & 2) != 0) variables["bias"] = how.bias = in.bias;
    if ((choice & 4) != 0) how.visible = partial_mask();
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
  how.visible = partial_mask();
  const Tensor y = nn::attend(in.q, in.k, in.v, how, false, Scope());
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kQueries; ++i) {
        Tensor sum = at::zeros({kHead}, at::kDouble);
        double total = 0.0;
        for (int64_t j = 0; j < kKeys; ++j) {
          if (!how.visible[b][0][i][j].item<bool>()) continue;
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
    how.visible = partial_mask();
    if (everywhere) how.visible.fill_(false);
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
  how.visible = at::ones({kQueries, kKeys}, at::kBool);
  how.visible.select(1, 2).fill_(false);
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

nn::AttentionShape uneven_shape(bool bias) {
  // Heads · head width (6) differs from the stream's width (5).
  return {5, 2, 3, bias, nn::torch_laws(5), nn::torch_laws(6)};
}

TEST(ProjectionGradients, WithSignalsBeforeAndAfter) {
  for (const auto place : {nn::SignalPlace::after, nn::SignalPlace::before}) {
    nn::Projections projections(uneven_shape(true));
    make_generic(projections, 1);
    const int64_t out = place == nn::SignalPlace::after ? 6 : 5;
    nn::LowRank query(5, out, 2), key(5, out, 2), value(5, out, 0);
    make_generic(query, 2);
    make_generic(key, 3);
    make_generic(value, 4);
    const nn::ProjectionSignals signals = {&query, &key, &value, place};
    const Tensor u = variable({2, 3, 5}, 5);
    const Tensor x = variable({2, 3, 5}, 6);
    NamedTensors variables = with_parameters(projections, {{"u", u}, {"x", x}});
    for (const auto& [name, part] : {std::make_pair("query", &query), std::make_pair("key", &key),
                                     std::make_pair("value", &value)}) {
      for (const auto& item : part->named_parameters()) {
        variables[std::string("signal ") + name + "." + item.key()] = item.value();
      }
    }
    gradcheck(
        [&] {
          const Tensor q = projections.query(u, x, signals, Scope());
          const Tensor k = projections.key(u, x, signals, Scope());
          const Tensor v = projections.value(u, x, signals, Scope());
          return projections.output(nn::merge_heads(q * k + v), Scope());
        },
        variables);
  }
}

TEST(Projections, SignalsSeeTheRawStreamAndJoinWhereTheySay) {
  nn::Projections projections(uneven_shape(true));
  make_generic(projections, 1);
  const auto p = projections.named_parameters();
  const Tensor u = noise({2, 3, 5}, 2);
  const Tensor x = noise({2, 3, 5}, 3);
  const auto linear = [&](const Tensor& in) {
    return at::matmul(in, p["query.weight"].t()) + p["query.bias"];
  };
  nn::LowRank after(5, 6, 2), before(5, 5, 2);
  make_generic(after, 4);
  make_generic(before, 5);
  const auto g = [&](nn::LowRank& part) {
    const auto own = part.named_parameters();
    return at::matmul(at::matmul(x, own["down"].t()), own["up"]);
  };
  nn::ProjectionSignals signals;
  expect_near(projections.query(u, x, signals, Scope()), nn::split_heads(linear(u), 2), 1e-13);
  signals.query = &after;
  expect_near(projections.query(u, x, signals, Scope()), nn::split_heads(linear(u) + g(after), 2),
              1e-13);
  signals = {&before, nullptr, nullptr, nn::SignalPlace::before};
  expect_near(projections.query(u, x, signals, Scope()), nn::split_heads(linear(u + g(before)), 2),
              1e-13);
}

}  // namespace
}  // namespace rondo::test
