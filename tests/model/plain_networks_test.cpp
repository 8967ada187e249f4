// Networks of the zoo against a second implementation written from the equations
// (tests/support/plain_networks.h), in double, so that the epsilon of the norms, too, can be
// distinguished from rounding.
#include "tests/support/plain_networks.h"

#include "rondo/config/depth_plan.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr double kSame = 1e-11;
constexpr double kTold = 1e-8;  // a different epsilon changes the logits by more than this

struct Comparison {
  const char* name;
  double epsilon;  // of the level norms
};

std::string comparison_name(const ::testing::TestParamInfo<Comparison>& info) {
  return test_name(info.param.name);
}

// A shrunk model of few levels in double, with generic weights.
struct DoubleModel {
  explicit DoubleModel(const std::string& name) : config(shrink(find_model(name).config())) {
    std::visit([](auto& c) { fewer_levels(c.depth); }, config.network);
    network = build_network(config);
    make_generic(*network, 5, 0.1);
    network->eval();
  }
  static void fewer_levels(DepthConfig& depth) {
    depth.levels = 3;
    for (int64_t& blocks : depth.recursive.blocks) blocks = std::min<int64_t>(blocks, 2);
  }
  Tensor logits(const NamedTensors& inputs) const {
    State state;
    return network->forward(inputs, state, Scope()).at("logits");
  }
  NamedTensors inputs() const {
    NamedTensors in = tiny_inputs(config, 2, 9, 7);
    if (in.count("images") != 0) in["images"] = in["images"].to(at::kDouble);
    return in;
  }

  ModelConfig config;
  std::shared_ptr<Network> network;
};

class PlainTranslator : public ::testing::TestWithParam<Comparison> {};

TEST_P(PlainTranslator, GivesTheSameLogitsAndTellsItsEpsilon) {
  const at::NoGradGuard no_grad;
  const auto [name, epsilon] = GetParam();
  const DoubleModel m(name);
  const NamedTensors in = m.inputs();
  const auto& c = std::get<EncoderDecoderConfig>(m.config.network);
  const Tensor got = m.logits(in);
  expect_near(got, plain_translation(*m.network, c, in, epsilon), kSame);
  const double other = epsilon == 1e-5 ? 1e-6 : 1e-5;
  EXPECT_GT((got - plain_translation(*m.network, c, in, other)).abs().max().item<double>(), kTold);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PlainTranslator,
                         ::testing::Values(Comparison{"ringformer/mt-base", 1e-5},
                                           Comparison{"ringformer/mt-base-vanilla", 1e-6},
                                           Comparison{"ringformer/mt-base-one-wide", 1e-6},
                                           Comparison{"ringformer/mt-base-universal", 1e-6},
                                           Comparison{"ringformer/mt-ablation-static", 1e-6},
                                           Comparison{"sret/mt-iwslt", 1e-5},
                                           Comparison{"sret/mt-iwslt-recursive", 1e-5},
                                           Comparison{"sret/mt-iwslt-recursive-lrc", 1e-5},
                                           Comparison{"sret/mt-wmt", 1e-5},
                                           Comparison{"sret/mt-wmt-recursive-lrc", 1e-5}),
                         comparison_name);

class PlainImages : public ::testing::TestWithParam<Comparison> {};

TEST_P(PlainImages, GivesTheSameLogitsAndTellsItsEpsilon) {
  const at::NoGradGuard no_grad;
  const auto [name, epsilon] = GetParam();
  const DoubleModel m(name);
  const NamedTensors in = m.inputs();
  const auto& c = std::get<VisionConfig>(m.config.network);
  const Tensor got = m.logits(in);
  expect_near(got, plain_vision(*m.network, c, in, epsilon), kSame);
  const double other = epsilon == 1e-5 ? 1e-6 : 1e-5;
  EXPECT_GT((got - plain_vision(*m.network, c, in, other)).abs().max().item<double>(), kTold);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PlainImages,
                         ::testing::Values(Comparison{"ringformer/image-small", 1e-5},
                                           Comparison{"ringformer/image-small-vit", 1e-6},
                                           Comparison{"ringformer/image-small-uit", 1e-6},
                                           Comparison{"ringformer/image-small-owf", 1e-6},
                                           Comparison{"sret/deit-t", 1e-6},
                                           Comparison{"sret/mixer-b16", 1e-6},
                                           Comparison{"sret/mixer-b16-recursive", 1e-6},
                                           Comparison{"sret/mixer-b16-recursive-lrc", 1e-6}),
                         comparison_name);

TEST(PlainPyramid, PiTGivesTheSameLogits) {
  const at::NoGradGuard no_grad;
  for (const char* name : {"sret/pit-t", "sret/pit-s"}) {
    const DoubleModel m(name);
    const NamedTensors in = m.inputs();
    const auto& c = std::get<PyramidConfig>(m.config.network);
    expect_near(m.logits(in), plain_pit(*m.network, c, in), kSame, name);
  }
}

TEST(NormEpsilon, BelongsToTheSchemeUnlessConfigured) {
  for (const char* scheme : {"vanilla", "universal", "one-wide", "ring", "recursive"}) {
    DepthConfig depth;
    depth.scheme = scheme;
    const DepthPlan plan = make_plan(depth, PlanShape{});
    const bool ring = depth.scheme == "ring";
    EXPECT_EQ(level_epsilon(0.0, plan), ring ? 1e-5 : 1e-6) << scheme;
    EXPECT_EQ(level_epsilon(1e-3, plan), 1e-3) << scheme;
    EXPECT_EQ(first_loops(plan).norm_epsilon, plan.norm_epsilon) << scheme;
  }
}

// Changing the scheme changes the epsilon; a given epsilon stays.
TEST(NormEpsilon, FollowsAChangedScheme) {
  const at::NoGradGuard no_grad;
  DoubleModel m("ringformer/mt-base-universal");
  auto& c = std::get<EncoderDecoderConfig>(m.config.network);
  c.norm_epsilon = 1e-3;
  m.network = build_network(m.config);
  make_generic(*m.network, 6, 0.1);
  m.network->eval();
  const NamedTensors in = m.inputs();
  expect_near(m.logits(in), plain_translation(*m.network, c, in, 1e-3), kSame);
}

}  // namespace
}  // namespace rondo::test
