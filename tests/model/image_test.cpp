// Image networks: mixed depth, permutations, different configurations of the same network.
#include "rondo/model/vision.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

NamedTensors with_labels(NamedTensors inputs) {
  inputs["labels"] = at::arange(inputs.at("images").size(0), at::kLong);
  return inputs;
}

// Tiny copies of both kinds of network with mixed-depth training.
std::vector<ModelConfig> mixed_depth_models() {
  ModelConfig flat = shrink(find_model("sret/deep-108-mixed").config());
  ModelConfig staged = shrink(find_model("sret/t").config());
  std::get<PyramidConfig>(staged.network).mixed_depth = true;
  return {flat, staged};
}

TEST(MixedDepth, TrainsBothDepthsAndAveragesTheirLosses) {
  for (const ModelConfig& config : mixed_depth_models()) {
    const TinyModel m(config);
    const NamedTensors in = with_labels(tiny_inputs(config, 3, 1));
    State state;
    m.network->train();
    at::manual_seed(1);
    NamedTensors out = m.network->forward(in, state, Scope());
    ASSERT_EQ(out.size(), 2U) << config.kind();
    ASSERT_EQ(out.at("logits").sizes(), out.at("logits_shallow").sizes());
    EXPECT_FALSE(out.at("logits").allclose(out.at("logits_shallow")));
    const auto loss_of = [&](const char* name) {
      return m.network->loss(in, {{"logits", out.at(name)}}).item<double>();
    };
    const double both = m.network->loss(in, out).item<double>();
    EXPECT_NEAR(both, (loss_of("logits") + loss_of("logits_shallow")) / 2.0, 1e-6);
    m.network->eval();
    EXPECT_EQ(m.network->forward(in, state, Scope()).count("logits_shallow"), 0U);
  }
}

TEST(MixedDepth, TheShallowPassPlaysEveryBlockOnce) {
  // With one loop the deep pass equals the shallow one.
  ModelConfig config = shrink(find_model("sret/deep-108-mixed").config());
  auto& vision = std::get<VisionConfig>(config.network);
  vision.drop_path = 0.0;
  const TinyModel deep(config);
  vision.depth.recursive.loops = {1};
  const TinyModel once(config);  // the same weights: drawn by name
  const NamedTensors in = tiny_inputs(config, 2, 2);
  deep.network->train();
  State state;
  const NamedTensors out = deep.network->forward(in, state, Scope());
  expect_near(out.at("logits_shallow"), once.logits(in), 1e-6);
}

TEST(ImagePermutations, GivenOnesAreUsedInOrderAndAreMissedByName) {
  const ModelConfig config = shrink(find_model("sret/t").config());
  const TinyModel m(config);
  NamedTensors in = tiny_inputs(config, 2, 3);
  const Tensor by_default = m.logits(in);
  // Stage 1 has 64 tokens and two blocks whose second loop is sliced; later stages permute nothing.
  const auto draw = [](uint64_t n) {
    return at::randperm(64, nn::counter_generator(n, "image test"), at::kLong);
  };
  in["permutation.0"] = draw(0);
  in["permutation.1"] = draw(1);
  const Tensor given = m.logits(in);
  EXPECT_FALSE(given.allclose(by_default));
  expect_identical(m.logits(in), given);
  std::swap(in["permutation.0"], in["permutation.1"]);
  EXPECT_FALSE(m.logits(in).allclose(given));
  in.erase("permutation.1");
  expect_error(ExitCode::bad_input, "permutation.1: missing", [&] { m.logits(in); });
}

TEST(ImagePermutations, EvaluationIsFixedUnlessConfiguredRandom) {
  ModelConfig config = shrink(find_model("sret/t").config());
  const NamedTensors in = tiny_inputs(config, 2, 4);
  const Tensor fixed = TinyModel(config).logits(in);
  std::get<PyramidConfig>(config.network).depth.recursive.eval_permutation = "random";
  const TinyModel m(config);
  at::manual_seed(1);
  const Tensor random = m.logits(in);
  EXPECT_FALSE(random.allclose(fixed));
  EXPECT_FALSE(m.logits(in).allclose(random));
  at::manual_seed(1);
  expect_identical(m.logits(in), random);
}

TEST(ImageEquivalence, OneGroupEverywhereIsGlobal) {
  ModelConfig sliced = shrink(find_model("sret/t").config());
  const TinyModel global(shrink(find_model("sret/t-global").config()));
  const NamedTensors in = tiny_inputs(sliced, 2, 5);
  const Tensor want = global.logits(in);
  EXPECT_FALSE(TinyModel(sliced).logits(in).allclose(want)) << "slicing must matter";
  std::get<PyramidConfig>(sliced.network).depth.recursive.groups = {{1, 1}, {1}, {1, 1}};
  expect_identical(TinyModel(sliced).logits(in), want);
}

TEST(ImageEquivalence, OneLoopIsThePlainNetwork) {
  const ModelConfig plain = shrink(find_model("sret/deit-t").config());
  ModelConfig looped = shrink(find_model("sret/deit-t-loop2").config());
  auto& recursive = std::get<VisionConfig>(looped.network).depth.recursive;
  const NamedTensors in = tiny_inputs(plain, 2, 6);
  const Tensor want = TinyModel(plain).logits(in);
  EXPECT_FALSE(TinyModel(looped).logits(in).allclose(want));
  recursive.loops = {1};
  for (const char* order : {"internal", "external"}) {
    recursive.order = order;
    expect_identical(TinyModel(looped).logits(in), want, order);
  }
}

TEST(ImageEquivalence, LearnableCoefficientsStartAsPlainResiduals) {
  const ModelConfig plain = shrink(find_model("sret/mixer-b16-recursive").config());
  const ModelConfig learned = shrink(find_model("sret/mixer-b16-recursive-lrc").config());
  const NamedTensors in = tiny_inputs(plain, 2, 7);
  const auto fresh_logits = [&](const ModelConfig& config) {
    TinyModel m(config);
    nn::initialize(*m.network, 5);
    return m.logits(in);
  };
  expect_near(fresh_logits(learned), fresh_logits(plain), 1e-6);
}

TEST(ImageEquivalence, RingSignalsStartAtZero) {
  // A ring with new signals of any rank is the same network.
  ModelConfig config = shrink(find_model("ringformer/image-small").config());
  const NamedTensors in = tiny_inputs(config, 2, 8);
  const auto fresh_logits = [&](const std::string& attention, bool full) {
    auto& ring = std::get<VisionConfig>(config.network).depth.ring;
    ring.attention = attention;
    ring.full_rank = full;
    TinyModel m(config);
    nn::initialize(*m.network, 5);
    return m.logits(in);
  };
  const Tensor want = fresh_logits("none", false);
  expect_identical(fresh_logits("after", false), want);
  expect_identical(fresh_logits("before", true), want);
}

// Drop-path rates of all levels of all stacks, in order.
std::vector<double> drop_rates(const ModelConfig& config) {
  const nn::ShapesOnly shapes_only;
  const auto network = build_network(config);
  std::vector<double> rates;
  for (const auto& module : network->modules(/*include_self=*/false)) {
    const auto* stack = dynamic_cast<const Stack*>(module.get());
    if (stack == nullptr) continue;
    for (const Level& level : stack->plan().levels) rates.push_back(level.drop_path);
  }
  return rates;
}

TEST(DropPathRates, OfSretAreThoseOfTheAuthorsProgram) {
  // rate · (applications in earlier stages + number of the block) / all applications.
  const std::vector<double> rates = drop_rates(find_model("sret/s").config());
  std::vector<double> want;
  int64_t before = 0;
  for (const int64_t blocks : {2, 5, 3}) {
    for (int64_t block = 0; block < blocks; ++block) {
      want.insert(want.end(), 2, 0.2 * static_cast<double>(before + block) / 20.0);
    }
    before += 2 * blocks;
  }
  ASSERT_EQ(rates.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_DOUBLE_EQ(rates[i], want[i]) << i;
}

TEST(DropPathRates, OfDeitGrowFromZeroToTheWholeRate) {
  const std::vector<double> rates = drop_rates(find_model("sret/deit-t").config());
  ASSERT_EQ(rates.size(), 12U);
  for (size_t i = 0; i < 12; ++i) EXPECT_DOUBLE_EQ(rates[i], 0.1 * static_cast<double>(i) / 11.0);
}

TEST(ImageInputs, OfAnotherSizeOrTypeAreRefused) {
  const ModelConfig config = shrink(find_model("ringformer/image-small").config());
  const TinyModel m(config);
  expect_error(ExitCode::bad_input, "expected [B, 3, 16, 16], got [2, 3, 16, 20]", [&] {
    m.logits({{"images", at::zeros({2, 3, 16, 20})}});
  });
  expect_error(ExitCode::bad_input, "expected Float with 4 dimensions", [&] {
    m.logits({{"images", at::zeros({2, 3, 16, 16}, at::kByte)}});
  });
  expect_error(ExitCode::bad_input, "'images' is missing", [&] { m.logits({}); });
  expect_error(ExitCode::bad_input, "'labels' is missing", [&] {
    m.network->loss({}, {{"logits", at::zeros({2, 7})}});
  });
}

TEST(ImageLoss, IsTheMeanCrossEntropyOfScoredLabels) {
  const Tensor logits = noise({4, 5}, 9, at::kFloat);
  const Tensor log_p = at::log_softmax(logits, -1);
  const NamedTensors in = {{"labels", at::tensor({2, -1, 4, 0}, at::kLong)}};
  const double want = -(log_p[0][2] + log_p[2][4] + log_p[3][0]).item<double>() / 3.0;
  EXPECT_NEAR(image_loss(in, {{"logits", logits}}).item<double>(), want, 1e-6);
}

}  // namespace
}  // namespace rondo::test
