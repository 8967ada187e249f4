// Executing plans: what a level computes, what it shares, and its gradients, for every scheme.
#include "rondo/recurrence/stack.h"

#include <algorithm>

#include "rondo/recurrence/universal.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

constexpr int64_t kStackWidth = 6, kStackHidden = 5, kStackTokens = 4, kStackLevels = 2;

nn::AttentionShape stack_attention() {
  return {kStackWidth, 2, 3, true, nn::torch_init(kStackWidth), nn::torch_init(kStackWidth)};
}

StackOptions stack_options_for(NormPlacement placement) {
  StackOptions o;
  o.width = kStackWidth;
  o.placement = placement;
  o.feed_forward.width = kStackWidth;
  o.feed_forward.hidden = kStackHidden;
  o.feed_forward_up = nn::torch_init(kStackWidth);
  o.feed_forward_down = nn::torch_init(kStackHidden);
  o.inner = kStackWidth;
  o.ring.rank = 2;
  o.recursive.residual = "both";
  o.recursive.projection = 1.0;
  return o;
}

DepthPlan small_plan(const std::string& scheme, bool cross) {
  DepthConfig depth;
  depth.scheme = scheme;
  depth.levels = kStackLevels;
  depth.recursive = stack_options_for(NormPlacement::pre).recursive;
  depth.recursive.blocks = {1};
  depth.recursive.loops = {kStackLevels};
  PlanShape shape;
  shape.cross = cross;
  return make_plan(depth, shape);
}

std::shared_ptr<Stack> small_stack(const StackOptions& o, DepthPlan plan, bool causal = false) {
  SelfAttentionOptions attention;
  attention.shape = stack_attention();
  attention.causal = causal;
  return std::make_shared<Stack>(
      o, std::move(plan), [&](int64_t) { return std::make_shared<SelfAttention>(attention); },
      stack_attention());
}

// One forward pass whose state is discarded.
Tensor run_stack(Stack& stack, const Tensor& x, const Tensor& memory = {}) {
  Permutations permutations(Permutations::Draw::fixed);
  State state;
  ForwardContext context;
  context.permutations = &permutations;
  context.positions = at::arange(x.size(1), at::kLong).unsqueeze(0);
  if (memory.defined()) {
    context.memory = memory;
    context.state = &state;
  }
  return stack.forward(x, context, Scope());
}

struct StackCase {
  const char* scheme;
  NormPlacement placement;
  bool cross;
};

class StackGradients : public ::testing::TestWithParam<StackCase> {};

TEST_P(StackGradients, OfInputMemoryAndEveryParameter) {
  const StackCase c = GetParam();
  const auto stack = small_stack(stack_options_for(c.placement), small_plan(c.scheme, c.cross));
  make_generic(*stack, 51);
  const Tensor x = variable({2, kStackTokens, kStackWidth}, 52);
  const Tensor memory = variable({2, 3, kStackWidth}, 53);
  NamedTensors variables = with_parameters(*stack, {{"x", x}});
  if (c.cross) variables["memory"] = memory;
  gradcheck([&] { return run_stack(*stack, x, c.cross ? memory : Tensor()); }, variables);
}

std::vector<StackCase> stack_cases() {
  std::vector<StackCase> cases;
  for (const char* scheme : {"vanilla", "universal", "one-wide", "ring", "recursive"}) {
    for (const auto placement : {NormPlacement::pre, NormPlacement::post}) {
      for (const bool cross : {false, true}) cases.push_back({scheme, placement, cross});
    }
  }
  return cases;
}

std::string stack_case_name(const ::testing::TestParamInfo<StackCase>& info) {
  std::string name = info.param.scheme;
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  name += info.param.placement == NormPlacement::pre ? "_pre" : "_post";
  return name + (info.param.cross ? "_cross" : "");
}

INSTANTIATE_TEST_SUITE_P(Schemes, StackGradients, ::testing::ValuesIn(stack_cases()),
                         stack_case_name);

TEST(StackGradients, OfEverySignalPlace) {
  for (const char* attention : {"after", "before", "none"}) {
    for (const char* feed_forward : {"before", "inter", "none"}) {
      StackOptions o = stack_options_for(NormPlacement::pre);
      o.ring.attention = attention;
      o.ring.feed_forward = feed_forward;
      o.ring.full_rank = std::string(feed_forward) == "inter";
      const auto stack = small_stack(o, small_plan("ring", false));
      make_generic(*stack, 54);
      const Tensor x = variable({1, 3, kStackWidth}, 55);
      gradcheck([&] { return run_stack(*stack, x); }, with_parameters(*stack, {{"x", x}}));
    }
  }
}

// Copies every parameter of `from` that `to` has too; returns their number.
int64_t copy_weights(const Stack& from, Stack& to) {
  const at::NoGradGuard no_grad;
  const auto source = from.named_parameters();
  int64_t copied = 0;
  for (auto& item : to.named_parameters()) {
    if (const Tensor* value = source.find(item.key())) {
      item.value().copy_(*value);
      ++copied;
    }
  }
  return copied;
}

TEST(Ring, WithZeroSignalsIsASharedBlock) {
  for (const auto placement : {NormPlacement::pre, NormPlacement::post}) {
    const auto ring = small_stack(stack_options_for(placement), small_plan("ring", false));
    DepthPlan shared_plan = small_plan("ring", false);
    for (Level& level : shared_plan.levels) level.signal = kNone;
    const auto shared = small_stack(stack_options_for(placement), shared_plan);
    nn::initialize(*ring, 1);  // signals start at zero, because `up` does
    EXPECT_EQ(copy_weights(*ring, *shared), static_cast<int64_t>(shared->parameters().size()));
    EXPECT_GT(ring->parameters().size(), shared->parameters().size());
    const Tensor x = noise({2, kStackTokens, kStackWidth}, 2, at::kFloat);
    expect_identical(run_stack(*ring, x), run_stack(*shared, x));
    unsettle(*ring, 3, 0.1);
    copy_weights(*ring, *shared);
    EXPECT_FALSE(run_stack(*ring, x).allclose(run_stack(*shared, x))) << "signals must matter";
  }
}

TEST(Universal, AddsTheStaticTableBeforeEveryLevel) {
  const auto universal =
      small_stack(stack_options_for(NormPlacement::post), small_plan("universal", false));
  make_generic(*universal, 61);
  DepthPlan one = small_plan("universal", false);
  one.levels.resize(1);
  one.levels[0].static_signal = kNone;
  const auto block = small_stack(stack_options_for(NormPlacement::post), one);
  make_generic(*block, 62);
  copy_weights(*universal, *block);
  Tensor x = noise({2, kStackTokens, kStackWidth}, 63);
  const Tensor got = run_stack(*universal, x);
  const Tensor positions = at::arange(kStackTokens, at::kLong).unsqueeze(0);
  for (int64_t level = 1; level <= kStackLevels; ++level) {
    x = run_stack(*block, x + static_signal(positions, level, kStackWidth, at::kDouble));
  }
  expect_near(got, x, 1e-13);
}

TEST(LevelSignals, ExistWhereTheAblationLeavesThem) {
  const auto names = [](const char* attention, const char* feed_forward, bool full) {
    RingConfig c;
    c.rank = 2;
    c.attention = attention;
    c.feed_forward = feed_forward;
    c.full_rank = full;
    const LevelSignals signals(c, 6, 8, 10);
    std::map<std::string, Shape> shapes;
    for (const auto& item : signals.named_parameters()) {
      shapes[item.key()] = item.value().sizes().vec();
    }
    return shapes;
  };
  const auto ours = names("after", "before", false);
  EXPECT_EQ(ours.size(), 8U);
  EXPECT_EQ(ours.at("query.down"), (Shape{2, 6}));
  EXPECT_EQ(ours.at("query.up"), (Shape{2, 8}));
  EXPECT_EQ(ours.at("feed_forward.up"), (Shape{2, 6}));
  EXPECT_EQ(names("none", "before", false).size(), 2U);
  EXPECT_EQ(names("after", "none", false).size(), 6U);
  EXPECT_EQ(names("before", "none", false).at("key.up"), (Shape{2, 6}));
  EXPECT_EQ(names("none", "inter", false).at("feed_forward.up"), (Shape{2, 10}));
  EXPECT_EQ(names("after", "none", true).at("value.full"), (Shape{6, 8}));
}

TEST(LevelSignals, RankIsTheWidthOverSixteenRoundedDown) {
  const RingConfig c;
  EXPECT_EQ(c.rank_for(728), 45);
  EXPECT_EQ(c.rank_for(1284), 80);
  EXPECT_EQ(c.rank_for(8), 1);
  RingConfig given;
  given.rank = 5;
  EXPECT_EQ(given.rank_for(728), 5);
}

TEST(LevelSignals, FeedForwardSignalJoinsTheInputOrTheHiddenLayer) {
  const Tensor x = noise({2, 6}, 1);
  for (const bool inter : {false, true}) {
    RingConfig c;
    c.rank = 2;
    c.feed_forward = inter ? "inter" : "before";
    LevelSignals signals(c, 6, 6, 10);
    make_generic(signals, 2);
    const auto p = signals.named_parameters();
    const Tensor g = at::matmul(at::matmul(x, p["feed_forward.down"].t()), p["feed_forward.up"]);
    expect_near(signals.feed_forward_input(x, Scope()), inter ? x : x + g, 1e-13);
    const Tensor inner = signals.feed_forward_inner(x, Scope());
    ASSERT_EQ(inner.defined(), inter);
    if (inter) expect_near(inner, g, 1e-13);
  }
}

TEST(ResidualCoefficients, StartAsAPlainResidualAndScaleWhatThePlacementSays) {
  const Tensor x = noise({2, 3}, 1);
  const Tensor f = noise({2, 3}, 2);
  for (const std::string placement : {"none", "identity", "branch", "both"}) {
    ResidualCoefficients fresh(placement, 2);
    nn::initialize(fresh, 1);
    expect_near(nn::weighted_sum(fresh.join(1, x, f)), x + f, 1e-15, placement);
    ResidualCoefficients moved(placement, 2);
    make_generic(moved, 3);
    const auto p = moved.named_parameters();
    const Tensor* identity = p.find("identity");
    const Tensor* branch = p.find("branch");
    EXPECT_EQ(identity != nullptr, placement == "identity" || placement == "both");
    EXPECT_EQ(branch != nullptr, placement == "branch" || placement == "both");
    const Tensor one = at::ones({}, at::kDouble);
    expect_near(nn::weighted_sum(moved.join(1, x, f)),
                x * (identity != nullptr ? (*identity)[1] : one) +
                    f * (branch != nullptr ? (*branch)[1] : one),
                1e-14, placement);
  }
}

TEST(ResidualCoefficients, Gradients) {
  for (const char* placement : {"identity", "branch", "both"}) {
    ResidualCoefficients part(placement, 2);
    make_generic(part, 4);
    const Tensor x = variable({2, 3}, 5);
    const Tensor f = variable({2, 3}, 6);
    const auto sum = [](const nn::WeightedSum& in) { return nn::weighted_sum(in); };
    gradcheck([&] { return sum(part.join(0, x, f)) * sum(part.join(1, f, x)); },
              with_parameters(part, {{"x", x}, {"f", f}}));
  }
}

TEST(LoopProjection, IsANormedFeedForwardWithItsOwnCoefficients) {
  RecursiveConfig c;
  c.residual = "both";
  c.projection = 1.5;
  LoopProjection projection(c, 6, 1e-6);
  make_generic(projection, 7);
  const Tensor x = variable({2, 3, 6}, 8);
  const auto p = projection.named_parameters();
  EXPECT_EQ(p["feed_forward.up.weight"].sizes().vec(), (Shape{9, 6}));
  const Tensor u = at::layer_norm(x, {6}, p["norm.weight"], p["norm.bias"], 1e-6);
  const Tensor h = at::gelu(at::linear(u, p["feed_forward.up.weight"], p["feed_forward.up.bias"]));
  const Tensor f = at::linear(h, p["feed_forward.down.weight"], p["feed_forward.down.bias"]);
  const auto run = [&] {
    return nn::weighted_sum(projection.forward(nn::WeightedSum{x}, Scope()));
  };
  expect_near(run().detach(),
              (x * p["residual.identity"][0] + f * p["residual.branch"][0]).detach(), 1e-13);
  gradcheck(run, with_parameters(projection, {{"x", x}}));
}

// Counts multiply-adds by the last part of their name.
class CrossCounter : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& name, double /*count*/) override { ++times[name]; }
  std::map<std::string, int64_t> times;
};

TEST(CrossAttention, MakesKeysAndValuesOfTheMemoryOnce) {
  CrossAttention cross(stack_attention());
  make_generic(cross, 9);
  State state;
  ForwardContext context;
  context.state = &state;
  context.memory = noise({2, 3, kStackWidth}, 10);
  CrossCounter counter;
  const Tensor u = noise({2, 2, kStackWidth}, 11);
  const Tensor first = cross.forward(u, 0, context, Scope(&counter));
  expect_identical(cross.forward(u, 0, context, Scope(&counter)), first);
  EXPECT_EQ(counter.times["key"], 1);
  EXPECT_EQ(counter.times["value"], 1);
  EXPECT_EQ(counter.times["query"], 2);
}

TEST(CrossAttention, SeesOnlyVisibleMemoryAndHasGradients) {
  CrossAttention cross(stack_attention());
  make_generic(cross, 12);
  const Tensor u = variable({2, 2, kStackWidth}, 13);
  const Tensor memory = variable({2, 3, kStackWidth}, 14);
  const Tensor mask = at::tensor({1, 1, 0, 1, 0, 1}, at::kInt).to(at::kBool).view({2, 1, 1, 3});
  const auto run = [&] {
    State state;
    ForwardContext context;
    context.state = &state;
    context.memory = memory;
    context.memory_mask = mask;
    return cross.forward(u, 0, context, Scope());
  };
  gradcheck(run, with_parameters(cross, {{"u", u}, {"memory", memory}}));
  const at::NoGradGuard no_grad;
  const Tensor before = run();
  memory[0][2].add_(1.0);
  memory[1][1].add_(1.0);
  expect_identical(run(), before);
  memory[1][2].add_(1.0);
  EXPECT_FALSE(run()[1].allclose(before[1]));
}

TEST(TokenFeedForward, MixesTokensAlikeInEveryChannel) {
  TokenFeedForward mixing(kStackTokens, 5);
  make_generic(mixing, 15);
  const Tensor x = variable({2, kStackTokens, 3}, 16);
  const auto run = [&](const Tensor& u) {
    ForwardContext context;
    MixingInput in;
    in.u = in.x = u;
    return mixing.forward(in, context, Scope());
  };
  gradcheck([&] { return run(x); }, with_parameters(mixing, {{"x", x}}));
  const at::NoGradGuard no_grad;
  const Tensor order = at::tensor({2, 0, 1}, at::kLong);
  expect_near(run(x.index_select(2, order)), run(x).index_select(2, order), 1e-13);
}

TEST(StackTraining, DropsPathsAndSublayersOnlyWhileTraining) {
  for (const bool path : {true, false}) {
    StackOptions o = stack_options_for(NormPlacement::pre);
    DepthPlan plan = small_plan("vanilla", false);
    if (path) set_drop_path(plan, 0.5, 1, 2);
    if (!path) o.mixing_dropout = o.feed_forward_dropout = 0.5;
    const auto stack = small_stack(o, plan);
    make_generic(*stack, 17);
    const Tensor x = noise({4, kStackTokens, kStackWidth}, 18);
    stack->eval();
    const Tensor quiet = run_stack(*stack, x);
    expect_identical(run_stack(*stack, x), quiet);
    stack->train();
    at::manual_seed(3);
    const Tensor noisy = run_stack(*stack, x);
    EXPECT_FALSE(noisy.allclose(quiet));
    at::manual_seed(3);
    expect_identical(run_stack(*stack, x), noisy);
  }
}

}  // namespace
}  // namespace rondo::test
