// Averaging checkpoints and models: the mean, and what cannot be averaged.
#include "rondo/train/average.h"

#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

TEST(Average, OfCheckpointsIsTheMeanOfTheirWeights) {
  const TrainingFixture shop;
  Checkpoint checkpoint = trained(shop, tiny_run(shop), "run");
  const CheckpointFolder folder(shop.run("run") + "/checkpoints");
  for (const int64_t step : folder.steps()) std::filesystem::remove(folder.path(step));
  const Tensor& weight = checkpoint.tensors.at("weight.embedding");
  const Tensor before = weight.clone();
  folder.save(6, checkpoint, 3);
  weight.add_(1);
  folder.save(7, checkpoint, 3);
  const auto mean_of = [&](int64_t last) {
    const AveragedModel averaged = average_checkpoints(shop.run("run"), last);
    EXPECT_EQ(averaged.count, last == 0 ? 2 : last);
    return named_tensors(*averaged.network).at("embedding").detach();
  };
  EXPECT_TRUE(at::allclose(mean_of(0), before + 0.5));
  EXPECT_TRUE(at::equal(mean_of(1), weight));
  expect_error(ExitCode::bad_input, "expected 3 checkpoints, got 2", [&] { mean_of(3); });
  expect_error(ExitCode::bad_input, "got 2", [&] { mean_of(-1); });
}

TEST(Average, CheckpointsThatAreNotFiniteAreRefused) {
  const TrainingFixture shop;
  Checkpoint checkpoint = trained(shop, tiny_run(shop), "run");
  const CheckpointFolder folder(shop.run("run") + "/checkpoints");
  const Tensor& weight = checkpoint.tensors.at("weight.embedding");
  weight[3][1] = NAN;
  folder.save(7, checkpoint, 2);
  const std::string part =
      folder.path(7) + ": tensor 'embedding': expected finite numbers, got nan";
  expect_error(ExitCode::bad_input, part, [&] { average_checkpoints(shop.run("run")); });
}

TEST(Average, NeedsModelsOfOneConfiguration) {
  const TrainingFixture shop;
  trained(shop, tiny_run(shop), "narrow");
  RunConfig wide = tiny_run(shop);
  std::get<LanguageModelConfig>(wide.model.network).hidden *= 2;
  trained(shop, wide, "wide");
  const AveragedModel same = average_models({shop.run("narrow"), shop.run("narrow")});
  EXPECT_EQ(same.count, 2);
  expect_error(ExitCode::bad_input, "its configuration differs from that of", [&] {
    average_models({shop.run("narrow"), shop.run("wide")});
  });
  expect_error(ExitCode::bad_input, "no models are given", [&] { average_models({}); });
}

TEST(StartWeightsOfARun, ThatAreNotFiniteAreRefused) {
  const TrainingFixture shop;
  const RunConfig config = tiny_run(shop);
  trained(shop, config, "run");
  const std::string model = best_model_path(shop.run("run"));
  NamedTensors weights = load_tensors(model);
  weights.at("embedding")[0][0] = INFINITY;
  save_tensors(model, weights, SafetensorsFile::open(model).metadata(), Checksum::xxh3);
  RunConfig again = config;
  again.train.start = shop.run("run");
  expect_error(ExitCode::bad_input,
               model + ": tensor 'embedding': expected finite numbers, got inf",
               [&] { LanguageTask(again, shop.cache()); });
}

}  // namespace
}  // namespace rondo::test
