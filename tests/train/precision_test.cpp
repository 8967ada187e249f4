// Training in mixed precision: each operation rounds as the table says, master weights stay fp32,
// and losses stay close to those of fp32. Training with recomputed levels: bit for bit the same.
#include "rondo/nn/precision.h"

#include "rondo/nn/ops.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// ---- precision of each operation ----------------------------------------------------------------

TEST(MixedPrecisionTable, IsFollowedByEveryOperation) {
  const auto in_bf16 = [](nn::Operation operation) {
    for (const nn::OperationPrecision& entry : nn::kMixedPrecision) {
      if (entry.operation == operation) return entry.bf16;
    }
    throw std::runtime_error("an operation is not in the table");
  };
  const Tensor x = noise({2, 3, 4}, 1, at::kFloat);
  const Tensor image = noise({2, 3, 5, 5}, 2, at::kFloat);
  const Tensor w = noise({4, 4}, 3, at::kFloat);
  const Tensor one = at::ones({4});
  const auto outputs = [&] {
    return std::vector<std::pair<nn::Operation, Tensor>>{
        {nn::Operation::linear, nn::linear(x, w, one, Scope())},
        {nn::Operation::matmul, nn::matmul(x, w, Scope())},
        {nn::Operation::convolution,
         nn::conv2d(image, noise({2, 3, 3, 3}, 4, at::kFloat), at::zeros({2}), {}, Scope())},
        {nn::Operation::norm, nn::layer_norm(x, one, one, 1e-5, Scope())},
        {nn::Operation::norm, nn::rms_norm(x, one, 1e-6, Scope())},
        {nn::Operation::softmax, nn::softmax(x, Tensor())},
        {nn::Operation::loss,
         sum_cross_entropy(x.flatten(0, 1).to(at::kBFloat16), at::zeros({6}, at::kLong)).sum},
    };
  };
  const auto exact = outputs();
  {
    const nn::MixedPrecision mixed(true);
    const auto rounded = outputs();
    for (size_t i = 0; i < rounded.size(); ++i) {
      // Results are fp32; the numbers show that the factors were rounded.
      EXPECT_EQ(rounded[i].second.scalar_type(), at::kFloat) << i;
      if (rounded[i].first != nn::Operation::loss) {
        EXPECT_NE(rounded[i].second.equal(exact[i].second), in_bf16(rounded[i].first)) << i;
      }
      expect_near(rounded[i].second, exact[i].second, 0.1, std::to_string(i));
    }
    // Rounded inputs are widened too, where the table says so.
    EXPECT_EQ(nn::rms_norm(x.to(at::kBFloat16), one, 1e-6, Scope()).scalar_type(), at::kFloat);
    const nn::MixedPrecision not_here(false);
    EXPECT_EQ(nn::linear(x, w, one, Scope()).scalar_type(), at::kFloat);
  }
  const auto again = outputs();
  for (size_t i = 0; i + 1 < again.size(); ++i) {
    expect_identical(again[i].second, exact[i].second, std::to_string(i));
  }
}

std::vector<double> logged_losses(const std::string& run) {
  std::vector<double> losses;
  for (const auto& line : metrics_of(run)) losses.push_back(line.at("loss"));
  return losses;
}

class MixedTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(MixedTraining, StaysBesideFp32WithMasterWeightsInFp32) {
  const TrainingFixture fixture({300, 200, 150, 400});
  RunConfig config = tiny_run(fixture, GetParam());
  config.train.steps = 40;
  config.schedule.rate = 0.03;
  config.train.ema = 0.9;
  trained(fixture, config, "fp32");
  config.train.precision = "bf16";
  const Checkpoint mixed = trained(fixture, config, "bf16");
  const std::vector<double> want = logged_losses(fixture.run("fp32"));
  const std::vector<double> got = logged_losses(fixture.run("bf16"));
  ASSERT_EQ(got.size(), 40U);
  EXPECT_NE(got.front(), want.front()) << "nothing was rounded";
  // Choosing neighbors from a memory is discrete: rounding may change it.
  const double apart = std::string(GetParam()) == "memorizing" ? 0.06 : 0.03;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], apart * want[i]) << i;
  EXPECT_LT(got.back(), 0.8 * got.front()) << "it learns";
  for (const char* prefix : {"weight.", "average.", "moment."}) {
    const NamedTensors tensors = mixed.below(prefix);
    EXPECT_FALSE(tensors.empty()) << prefix;
    for (const auto& [name, tensor] : tensors) EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MixedTraining,
                         ::testing::Values("window", "block-recurrent", "feedback", "memorizing"),
                         [](const auto& given) { return test_name(given.param); });

// Interrupted or not, also in mixed precision.
TEST(MixedResume, IsExact) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  config.train.precision = "bf16";
  const Checkpoint want = trained(fixture, config, "whole");
  config.train.steps = 3;
  trained(fixture, config, "parts");
  config.train.steps = 6;
  expect_identical_tensors(trained(fixture, config, "parts").tensors, want.tensors);
}

// ---- recomputed levels --------------------------------------------------------------------------

class RecomputedTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(RecomputedTraining, EndsWithTheSameBits) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture, GetParam());
  language_of(config).depth.levels = 4;
  language_of(config).dropout = 0.2;
  config.train.accumulate = 2;
  const Checkpoint kept = trained(fixture, config, "kept");
  for (const int64_t every : {1, 2, 3}) {
    config.train.recompute_levels = every;
    const Checkpoint again = trained(fixture, config, "again" + std::to_string(every));
    SCOPED_TRACE("every " + std::to_string(every));
    expect_identical_tensors(again.tensors, kept.tensors);
  }
  language_of(config).dropout = 0.0;  // otherwise the test would not involve dropout
  const Checkpoint plain = trained(fixture, config, "plain");
  EXPECT_FALSE(plain.tensors.at("weight.embedding").equal(kept.tensors.at("weight.embedding")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecomputedTraining,
                         ::testing::Values("window", "block-recurrent", "memorizing"),
                         [](const auto& given) { return test_name(given.param); });

TEST(RecomputedMixed, EndsWithTheSameBits) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  config.train.precision = "bf16";
  const Checkpoint kept = trained(fixture, config, "kept");
  config.train.recompute_levels = 1;
  expect_identical_tensors(trained(fixture, config, "again").tensors, kept.tensors);
}

// A recursive stack of an image classifier: blocks applied several times, paths dropped.
NamedTensors trained_vision(int64_t every) {
  const QuietLog quiet;
  const testing::TempDir folder;
  RunConfig config = scripted_run();
  VisionConfig vision;
  vision.depth.scheme = "recursive";
  vision.depth.recursive.blocks = {2};
  vision.depth.recursive.loops = {3};
  vision.depth.recursive.residual = "both";
  vision.depth.recursive.projection = 1.0;
  vision.dropout = 0.1;
  vision.drop_path = 0.3;
  config.model = shrink(ModelConfig{vision});
  config.train.steps = 5;
  config.train.recompute_levels = every;
  auto network = build_network(config.model);
  nn::initialize(*network, 1);
  NamedTensors inputs = tiny_inputs(config.model, 8, 3);
  inputs["labels"] = at::arange(8, at::kLong).remainder(7);
  ScriptedTask task(network, inputs, 4);
  RunFolder run(folder.path(), config);
  EXPECT_EQ(train(task, config, run), 0);
  return load_checkpoint(run.checkpoints().path(5)).tensors;
}

TEST(RecomputedVision, EndsWithTheSameBits) {
  const NamedTensors kept = trained_vision(0);
  expect_identical_tensors(trained_vision(1), kept);
  // Several uses of a weight in one piece are summed in a different order.
  const NamedTensors thrice = trained_vision(3);
  for (const auto& [name, tensor] : kept) {
    if (name.rfind("weight.", 0) == 0) expect_near(thrice.at(name), tensor, 2e-3, name);
  }
}

}  // namespace
}  // namespace rondo::test
