// Averaging checkpoints: what no mean can be made of. (What it makes:
// tests/cli/translate_test.cpp.)
#include "cli/verbs.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

TEST(AverageVerb, CheckpointsThatAreNotFiniteAreRefused) {
  const Workshop shop;
  Checkpoint checkpoint = trained(shop, tiny_run(shop), "run");
  const CheckpointFolder folder(shop.run("run") + "/checkpoints");
  const Tensor& weight = checkpoint.tensors.at("weight.embedding");
  weight[3][1] = NAN;
  folder.save(7, checkpoint, 2);
  cli::AverageOptions options;
  options.models = {shop.run("run")};
  options.output = shop.run("mean.safetensors");
  const std::string part =
      folder.path(7) + ": tensor 'embedding': expected finite numbers, got nan";
  expect_error(ExitCode::bad_input, part, [&] { rondo_engine_average(options); });
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST(StartWeightsOfARun, ThatAreNotFiniteAreRefused) {
  const Workshop shop;
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
