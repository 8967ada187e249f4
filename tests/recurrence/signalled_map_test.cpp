// Maps that a level changes by its signals: where signals are added, their inputs, their gradients.
#include "rondo/recurrence/ring.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

nn::AttentionShape uneven_shape(bool bias) {
  // Heads · head width (6) differs from the stream's width (5).
  return {5, 2, 3, bias, nn::torch_init(5), nn::torch_init(6)};
}

// A low-rank map from a stream of width 5, without zero weights.
std::shared_ptr<nn::LowRank> generic_signal(int64_t out, int64_t rank, uint64_t seed) {
  auto signal = std::make_shared<nn::LowRank>(5, out, rank);
  make_generic(*signal, seed);
  return signal;
}

TEST(SignalledMapGradients, BeforeAndAfter) {
  for (const auto place : {SignalPlace::after, SignalPlace::before}) {
    nn::Projections projections(uneven_shape(true));
    make_generic(projections, 1);
    const int64_t out = place == SignalPlace::after ? 6 : 5;
    const auto query = generic_signal(out, 2, 2);
    const auto key = generic_signal(out, 2, 3);
    const auto value = generic_signal(out, 0, 4);
    const SignalledMap maps[3] = {{query, place}, {key, place}, {value, place}};
    const nn::ProjectionHooks hooks = {&maps[0], &maps[1], &maps[2]};
    const Tensor u = variable({2, 3, 5}, 5);
    const Tensor x = variable({2, 3, 5}, 6);
    NamedTensors variables = with_parameters(projections, {{"u", u}, {"x", x}});
    for (const auto& [name, part] : {std::make_pair("query", query), std::make_pair("key", key),
                                     std::make_pair("value", value)}) {
      for (const auto& item : part->named_parameters()) {
        variables[std::string("signal ") + name + "." + item.key()] = item.value();
      }
    }
    gradcheck(
        [&] {
          const Tensor q = projections.query(u, x, hooks, Scope());
          const Tensor k = projections.key(u, x, hooks, Scope());
          const Tensor v = projections.value(u, x, hooks, Scope());
          return projections.output(nn::merge_heads(q * k + v), Scope());
        },
        variables);
  }
}

TEST(SignalledMaps, SeeTheRawStreamAndJoinWhereTheySay) {
  nn::Projections projections(uneven_shape(true));
  make_generic(projections, 1);
  const auto p = projections.named_parameters();
  const Tensor u = noise({2, 3, 5}, 2);
  const Tensor x = noise({2, 3, 5}, 3);
  const auto linear = [&](const Tensor& in) {
    return at::matmul(in, p["query.weight"].t()) + p["query.bias"];
  };
  const auto after = generic_signal(6, 2, 4);
  const auto before = generic_signal(5, 2, 5);
  const auto g = [&](const std::shared_ptr<nn::LowRank>& part) {
    const auto own = part->named_parameters();
    return at::matmul(at::matmul(x, own["down"].t()), own["up"]);
  };
  nn::ProjectionHooks hooks;
  expect_near(projections.query(u, x, hooks, Scope()), nn::split_heads(linear(u), 2), 1e-13);
  const SignalledMap joins_after(after, SignalPlace::after);
  hooks.query = &joins_after;
  expect_near(projections.query(u, x, hooks, Scope()), nn::split_heads(linear(u) + g(after), 2),
              1e-13);
  const SignalledMap joins_before(before, SignalPlace::before);
  hooks.query = &joins_before;
  expect_near(projections.query(u, x, hooks, Scope()), nn::split_heads(linear(u + g(before)), 2),
              1e-13);
}

}  // namespace
}  // namespace rondo::test
