// Training on sentence pairs: losses and gradients against the network run pair by pair, exact
// resume, what is rejected.
#include "rondo/train/translation_task.h"

#include <fmt/format.h>

#include "rondo/train/step.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// Files with generated sentences: the target is the source, shifted by one letter.
class PairFixture : public TrainingFixture {
 public:
  explicit PairFixture(int64_t pairs = 60) : TrainingFixture(std::vector<int64_t>{}) {
    std::string source;
    std::string target;
    for (int64_t i = 0; i < pairs; ++i) {
      for (int64_t k = 0; k < 1 + (i * 7) % 9; ++k) {
        const int64_t letter = (i + k * k) % 6;
        source += static_cast<char>('a' + letter);
        target += static_cast<char>('b' + letter);
      }
      source += '\n';
      target += '\n';
    }
    testing::spill(prefix() + ".de", source);
    testing::spill(prefix() + ".en", target);
  }
  std::string prefix() const { return texts() + "/pairs"; }
};

RunConfig pair_run(const PairFixture& fixture, const std::string& scheme = "ring") {
  RunConfig c = tiny_run(fixture);
  EncoderDecoderConfig m;
  m.source_vocabulary = m.target_vocabulary = kByteVocabulary;
  m.padding = kBytePadding;
  m.width = 16;
  m.hidden = 24;
  m.heads = 2;
  m.depth.scheme = scheme;
  m.depth.levels = 2;
  c.model = ModelConfig{m};
  c.pairs.train = fixture.prefix();
  c.pairs.tokenizer = "bytes";
  c.pairs.batch_tokens = 64;
  c.train.batch = 100;
  return c;
}

EncoderDecoderConfig& translator_of(RunConfig& config) {
  return std::get<EncoderDecoderConfig>(config.model.network);
}

NamedTensors gradients_of(const Network& network) {
  NamedTensors out;
  for (const auto& item : network.named_parameters()) {
    if (item.value().grad().defined()) out[item.key()] = item.value().grad().clone();
  }
  return out;
}

// A whole epoch in batches of tokens gives the gradient of all pairs taken one at a time.
TEST(TranslationTask, BatchingDoesNotChangeTheGradient) {
  const PairFixture fixture;
  RunConfig config = pair_run(fixture);
  translator_of(config).dropout = 0.0;
  const auto epoch = [&](int64_t tokens, int64_t rows) {
    RunConfig c = config;
    c.pairs.batch_tokens = tokens;
    c.train.batch = rows;
    TranslationTask task(c, fixture.cache());
    task.network().train();
    double sum = 0;
    int64_t count = 0;
    int64_t pairs = 0;
    while (pairs < task.pairs().count()) {
      const LossSum loss = task.next_loss();
      loss.sum.backward();
      sum += loss.sum.item<double>();
      count += loss.count;
      pairs += task.last_rows();
    }
    EXPECT_EQ(pairs, task.pairs().count());
    return std::make_tuple(sum, count, gradients_of(task.network()));
  };
  const auto [sum_a, count_a, gradients_a] = epoch(64, 100);
  const auto [sum_b, count_b, gradients_b] = epoch(1000, 1);
  EXPECT_EQ(count_a, count_b);
  EXPECT_NEAR(sum_a, sum_b, 1e-3 * std::abs(sum_b));
  ASSERT_EQ(gradients_a.size(), gradients_b.size());
  for (const auto& [name, gradient] : gradients_b) {
    const double scale = std::max(1.0, gradient.abs().max().item<double>());
    expect_near(gradients_a.at(name), gradient, 1e-4 * scale, name);
  }
}

// What a group sends while a backward pass is under way must not change anymore.
TEST(TranslationTask, GradientsOfAStageAreComplete) {
  const PairFixture fixture;
  for (const char* style : {"ringformer", "fairseq"}) {
    for (const char* scheme : {"vanilla", "universal", "ring"}) {
      for (const int64_t recompute : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} {} {}", style, scheme, recompute));
        RunConfig config = pair_run(fixture, scheme);
        translator_of(config).style = style;
        config.train.accumulate = 2;
        config.train.recompute_levels = recompute;
        TranslationTask task(config, fixture.cache());
        prepare_network(task.network(), config.train);
        std::vector<int64_t> seen;
        std::vector<NamedTensors> early;
        compute_gradients(task, config.train, 1, 0, [&](int64_t stage) {
          seen.push_back(stage);
          early.push_back(gradients_of(task.network()));
        });
        ASSERT_EQ(seen, (std::vector<int64_t>{0, 1}));
        const auto prefixes = task.network().gradient_stages();
        const NamedTensors last = gradients_of(task.network());
        size_t complete = 0;
        for (const auto& [name, gradient] : last) {
          for (size_t stage = 0; stage < prefixes.size(); ++stage) {
            for (const std::string& prefix : prefixes[stage]) {
              if (name.rfind(prefix, 0) != 0) continue;
              EXPECT_TRUE(early[stage].count(name) > 0 && early[stage].at(name).equal(gradient))
                  << name;
              ++complete;
            }
          }
        }
        EXPECT_GT(complete, last.size() / 2);
        EXPECT_FALSE(early[1].count("source_embedding") > 0 &&
                     early[1].at("source_embedding").equal(last.at("source_embedding")));
      }
    }
  }
}

TEST(TranslationTask, ResumesBitByBit) {
  const PairFixture fixture;
  RunConfig config = pair_run(fixture);
  config.train.steps = 30;  // beyond one epoch
  const auto train_in = [&](const std::string& name, const RunConfig& c) {
    TranslationTask task(c, fixture.cache());
    RunFolder folder(fixture.run(name), c);
    EXPECT_EQ(train(task, c, folder), 0);
    return newest_checkpoint(fixture.run(name));
  };
  const Checkpoint whole = train_in("whole", config);
  for (const int64_t stop : {1, 7, 23}) {
    RunConfig half = config;
    half.train.steps = stop;
    const std::string name = "stopped" + std::to_string(stop);
    train_in(name, half);
    const Checkpoint resumed = train_in(name, config);
    expect_identical_tensors(resumed.tensors, whole.tensors);
    EXPECT_EQ(resumed.metadata.at("position"), whole.metadata.at("position"));
  }
}

TEST(TranslationTask, AnEvaluationStopsBetweenBatches) {
  const PairFixture fixture;
  RunConfig config = pair_run(fixture);
  config.pairs.valid = fixture.prefix();
  TranslationTask task(config, fixture.cache());
  expect_stops_between_batches(task);
}

TEST(TranslationTask, Learns) {
  const PairFixture fixture;
  RunConfig config = pair_run(fixture, "universal");
  translator_of(config).dropout = 0.0;
  config.pairs.valid = fixture.prefix();
  config.train.steps = 150;
  TranslationTask task(config, fixture.cache());
  task.network().eval();
  const double before = task.evaluate({})->selection;
  RunFolder folder(fixture.run("learns"), config);
  EXPECT_EQ(train(task, config, folder), 0);
  task.network().eval();
  const auto after = task.evaluate({});
  EXPECT_LT(after->selection, 0.7 * before);
  EXPECT_NEAR(after->metrics.at("valid_perplexity"), std::exp(after->selection), 1e-9);
}

TEST(TranslationTask, RefusesWhatDoesNotFit) {
  const PairFixture fixture;
  const auto refused = [&](const std::string& part, auto change) {
    RunConfig config = pair_run(fixture);
    change(config);
    expect_error(ExitCode::bad_input, part, [&] { TranslationTask(config, fixture.cache()); });
  };
  refused("data.train: missing", [](RunConfig& c) { c.pairs.train = ""; });
  refused("data.tokenizer: missing", [](RunConfig& c) { c.pairs.tokenizer = ""; });
  refused("model.source_vocabulary: expected at least 260",
          [](RunConfig& c) { translator_of(c).source_vocabulary = 100; });
  refused("model.target_vocabulary: expected at least 260",
          [](RunConfig& c) { translator_of(c).target_vocabulary = 100; });
  refused("model.padding: expected 256", [](RunConfig& c) { translator_of(c).padding = 0; });
}

TEST(PairConfig, IsWhatAnExperimentWithATranslationModelReads) {
  const ConfigTable table = ConfigTable::from_string(
      "[model]\nkind = \"encoder-decoder\"\n[data]\ntrain = \"a/b\"\nsource = \"fr\"\ncut = true\n",
      "x.toml");
  const RunConfig config = read_run_config(table);
  EXPECT_EQ(config.pairs.train, "a/b");
  EXPECT_EQ(config.pairs.source, "fr");
  EXPECT_TRUE(config.pairs.cut);
  const RunConfig again =
      read_run_config(ConfigTable::from_string(dump_run_config(config), "again.toml"));
  EXPECT_EQ(dump_run_config(again), dump_run_config(config));
  expect_error(ExitCode::bad_input, "data.batch_tokens", [] {
    read_run_config(ConfigTable::from_string(
        "[model]\nkind = \"language-model\"\n[data]\nbatch_tokens = 3\n", "y.toml"));
  });
}

}  // namespace
}  // namespace rondo::test
