// The memory that a dry run reports, against what a run of the same experiment then uses.
#include "rondo/nn/allocator.h"
#include "rondo/train/image_task.h"
#include "rondo/train/translation_task.h"
#include "tests/train/image_task_util.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

using MakeTask = std::function<std::unique_ptr<Task>()>;

void expect_foretold(const RunConfig& config, const std::string& run, const MakeTask& make) {
  if (!nn::install_allocator()) GTEST_SKIP() << "not under AddressSanitizer";
  const auto before = static_cast<double>(nn::memory_use().in_use);
  double foretold = 0;
  {
    const auto task = make();
    foretold = static_cast<double>(dry_run(*task, config).tensor_bytes) - before;
  }
  const auto task = make();
  nn::watch_memory();
  RunFolder folder(run, config);
  ASSERT_EQ(train(*task, config, folder), 0);
  const double taken = static_cast<double>(nn::memory_use().watched) - before;
  EXPECT_GT(taken, 1e5) << "too small to tell";
  EXPECT_NEAR(foretold, taken, 0.1 * taken);
}

TEST(DryRunMemory, OfALanguageModel) {
  const TrainingFixture fixture({3000, 2000, 1500, 4000});
  RunConfig config = tiny_run(fixture, "window");
  language_of(config).time.segment = 120;
  config.train.batch = 4;
  for (const char* precision : {"fp32", "bf16"}) {
    config.train.precision = precision;
    config.train.ema = 0.9;
    config.train.steps = 12;
    expect_foretold(config, fixture.run(precision),
                    [&] { return std::make_unique<LanguageTask>(config, fixture.cache()); });
  }
}

TEST(DryRunMemory, OfATranslator) {
  const TrainingFixture fixture(std::vector<int64_t>{});
  std::string text;
  for (int64_t i = 0; i < 400; ++i) {
    text += std::string(static_cast<size_t>(20 + (i * 37) % 60), 'a') + "\n";
  }
  const std::string prefix = fixture.texts() + "/pairs";
  testing::spill(prefix + ".de", text);
  testing::spill(prefix + ".en", text);
  RunConfig config = tiny_run(fixture);
  EncoderDecoderConfig m;
  m.source_vocabulary = m.target_vocabulary = kByteVocabulary;
  m.padding = kBytePadding;
  m.width = 32;
  m.hidden = 64;
  m.heads = 2;
  m.depth.scheme = "ring";
  m.depth.levels = 2;
  config.model = ModelConfig{m};
  config.pairs.train = prefix;
  config.pairs.tokenizer = "bytes";
  config.pairs.batch_tokens = 1024;
  config.train.batch = 100;
  config.train.steps = 12;
  expect_foretold(config, fixture.run("run"),
                  [&] { return std::make_unique<TranslationTask>(config, fixture.cache()); });
}

TEST(DryRunMemory, OfAnImageClassifier) {
  const ImageShop shop;
  RunConfig config = tiny_image_run(shop, tiny_pyramid());
  config.train.steps = 8;
  expect_foretold(config, shop.run("run"), [&] { return std::make_unique<ImageTask>(config); });
}

}  // namespace
}  // namespace rondo::test
