// Training a language model on documents: each row reads its own, state and cache are carried from
// segment to segment and reset at every new document (models.md 2.7), against a plain reader; and
// the probe of the state.
#include "rondo/train/language_task.h"

#include "tests/support/shrink.h"
#include "tests/train/plain_reader.h"

namespace rondo::test {
namespace {

// Shorter than a segment, equal, one longer, several: every way a document can end.
const std::vector<int64_t> kManyLengths = {70, 33, 150, 12, 2, 41, 13, 1, 24, 25, 5, 97};

LanguageModel& model_of(LanguageTask& task) { return dynamic_cast<LanguageModel&>(task.network()); }

class CarriedState : public ::testing::TestWithParam<const char*> {
 protected:
  CarriedState() : fixture_(kManyLengths), config_(tiny_run(fixture_, GetParam())) {
    language_of(config_).dropout = 0.0;
  }

  // Row `row` of the carried state equals the state after reading `count` tokens of `document`
  // alone.
  static void expect_row(const NamedTensors& carried, int64_t row, const State& alone) {
    for (const auto& [name, tensor] : alone.tensors()) {
      if (name.find("memory") != std::string::npos) continue;  // longer if other rows have more
      const Tensor got = carried.at(name)[row];
      expect_near(got, tensor[0], 1e-5, name + " of row " + std::to_string(row));
    }
  }

  TrainingFixture fixture_;
  RunConfig config_;
};

TEST_P(CarriedState, IsThatOfEveryDocumentReadAlone) {
  LanguageTask task(config_, fixture_.cache());
  task.network().train();
  PlainReader plain(model_of(task), task.documents());
  const int64_t length = language_of(config_).time.segment;
  SegmentReader reader(task.documents(), {3, length, 1, true, true, kBytePadding});
  SegmentBatch batch;
  int64_t begun = 0;
  int64_t continued = 0;
  for (int64_t n = 0; n < 40; ++n) {
    SCOPED_TRACE("batch " + std::to_string(n));
    ASSERT_TRUE(reader.next(batch));
    const LossSum loss = task.next_loss();
    const NamedTensors carried = task.carried();
    double want = 0;
    for (int64_t row = 0; row < 3; ++row) {
      const auto r = static_cast<size_t>(row);
      const std::vector<double> nats = plain.nats(batch.document[r]);
      const int64_t first = batch.offset[r];
      const int64_t total = task.documents().document(batch.document[r]).tokens;
      for (int64_t t = first; t < std::min(first + length, total - 1); ++t) {
        want += nats[static_cast<size_t>(t)];
      }
      (batch.reset[r] != 0 ? begun : continued) += 1;
      if (std::string(GetParam()) != "none" && first + length <= total) {
        expect_row(carried, row, plain.state_after(batch.document[r], first + length));
      }
    }
    EXPECT_EQ(loss.count, batch.scored);
    EXPECT_NEAR(loss.sum.item<double>(), want, 1e-5 * static_cast<double>(batch.scored) + 1e-5);
    EXPECT_EQ(task.position(), reader.position());
  }
  EXPECT_GT(begun, 15);
  EXPECT_GT(continued, 40);
}

// Restored from position and carried state, a task continues as if it had not been interrupted.
TEST_P(CarriedState, CanBeRestoredAtAnyBatch) {
  LanguageTask task(config_, fixture_.cache());
  task.network().train();
  for (int64_t n = 0; n < 9; ++n) {
    LanguageTask other(config_, fixture_.cache());
    other.network().train();
    other.restore(task.position(), task.carried(), /*other_rows=*/false);
    const LossSum want = task.next_loss();
    const LossSum got = other.next_loss();
    expect_identical(got.sum.detach(), want.sum.detach());
    EXPECT_EQ(got.count, want.count);
    expect_identical_tensors(other.carried(), task.carried());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CarriedState,
                         ::testing::Values("none", "window", "block-recurrent", "feedback",
                                           "memorizing"),
                         [](const auto& given) { return test_name(given.param); });

TEST(LanguageTask, RefusesWhatDoesNotFit) {
  const TrainingFixture fixture;
  const auto refused = [&](const std::string& part, const auto& change) {
    RunConfig config = tiny_run(fixture, "feedback");
    change(config);
    expect_error(ExitCode::bad_input, part, [&] { LanguageTask(config, fixture.cache()); });
  };
  refused("data.train: missing", [](RunConfig& c) { c.data.train = ""; });
  refused("expected at least 260, the vocabulary of bytes, got 100",
          [](RunConfig& c) { language_of(c).vocabulary = 100; });
  refused("train.recompute_levels: not supported with feedback",
          [](RunConfig& c) { c.train.recompute_levels = 1; });
  RunConfig elsewhere = tiny_run(fixture);
  elsewhere.data.train = "/nowhere/at/all";
  expect_error(ExitCode::io, "/nowhere/at/all", [&] { LanguageTask(elsewhere, fixture.cache()); });
}

TEST(LanguageTask, EvaluatesTheValidationDocuments) {
  const TrainingFixture fixture(kManyLengths);
  RunConfig config = tiny_run(fixture);
  EXPECT_FALSE(LanguageTask(config, fixture.cache()).evaluate({}).has_value());
  config.data.valid = fixture.texts();
  config.train.eval_tokens = 0;
  LanguageTask task(config, fixture.cache());
  task.network().eval();
  PlainReader plain(model_of(task), task.documents());
  double total = 0;
  double count = 0;
  for (int64_t d = 0; d < task.documents().count(); ++d) {
    for (const double nats : plain.nats(d)) {
      total += nats;
      count += 1;
    }
  }
  const auto evaluation = task.evaluate({});
  ASSERT_TRUE(evaluation.has_value());
  EXPECT_NEAR(evaluation->selection, total / count / M_LN2, 1e-5);
  EXPECT_NEAR(evaluation->metrics.at("valid_bits_per_token"), total / count / M_LN2, 1e-5);
}

// ---- the probe --------------------------------------------------------------------------------

TEST(StateProbe, SaysNothingOfModelsWithoutAState) {
  const TrainingFixture fixture;
  const RunConfig config = tiny_run(fixture, "window");
  LanguageTask task(config, fixture.cache());
  task.next_loss();
  EXPECT_TRUE(task.probe().empty());
}

TEST(StateProbe, MeasuresGateNormAndRank) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  language_of(config).time.recurrent_layers = {1, 2};
  LanguageTask task(config, fixture.cache());
  task.network().train();
  task.next_loss();
  const NamedTensors carried = task.carried();
  const Metrics probed = task.probe();
  for (const char* level : {"0", "1"}) {
    const Tensor state = carried.at(std::string("level.") + level + ".state");
    EXPECT_NEAR(probed.at(std::string("state_") + level + "_norm"),
                state.square().sum(-1).sqrt().mean().item<double>(), 1e-4);
    const double rank = probed.at(std::string("state_") + level + "_rank");
    EXPECT_GE(rank, 1.0);
    EXPECT_LE(rank, 3.0);
  }
  EXPECT_NEAR(probed.at("gate_mean"), 0.5, 0.1);  // sigmoid of biases near zero
  EXPECT_EQ(probed.count("state_use"), 1U);
  expect_identical_tensors(task.carried(), carried);
}

// A letter repeated every 16 tokens, with a window of 4: only a state can predict it.
TEST(StateProbe, IsPositiveForAModelThatMustUseItsState) {
  TrainingFixture fixture(std::vector<int64_t>{});
  for (size_t i = 0; i < 4; ++i) {
    std::string text;
    for (int n = 0; n < 400; ++n) text += n % 16 == 0 ? static_cast<char>('a' + i) : '.';
    fixture.write(i, text);
  }
  RunConfig config = tiny_run(fixture);
  language_of(config).dropout = 0.0;
  language_of(config).depth.levels = 1;
  language_of(config).time.recurrent_layers = {1};
  language_of(config).time.segment = 32;
  config.train.batch = 4;
  config.train.steps = 200;
  config.train.log_every = 200;
  config.train.probe_every = 200;
  config.schedule.rate = 0.02;
  EXPECT_EQ(train_language(fixture, config, fixture.run("run")), 0);
  const auto last = metrics_of(fixture.run("run")).back();
  EXPECT_EQ(last.at("step"), 200);
  EXPECT_GT(last.at("state_use"), 0.03) << last.dump();
}

TEST(EffectiveRank, OfKnownMatrices) {
  EXPECT_NEAR(effective_rank(at::eye(4).unsqueeze(0)), 4.0, 1e-4);
  EXPECT_NEAR(effective_rank(at::ones({1, 5, 3})), 1.0, 1e-4);
  EXPECT_NEAR(effective_rank(at::diag(at::tensor({1.0, 1.0, 0.0, 0.0})).unsqueeze(0)), 2.0, 1e-4);
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  const Tensor two = at::diag(at::tensor({-3.0, 1.0})).unsqueeze(0);
  EXPECT_NEAR(effective_rank(two), std::exp(entropy), 1e-4);
  // Rotated and scaled it is the same; over a batch it is the mean.
  const double angle = 0.3;
  const Tensor turn =
      at::tensor({std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)})
          .view({2, 2})
          .to(at::kFloat);
  const Tensor turned = 100.0 * at::matmul(turn, two.to(at::kFloat));
  EXPECT_NEAR(effective_rank(turned), std::exp(entropy), 1e-4);
  const Tensor both = at::cat({at::eye(2).unsqueeze(0), at::ones({1, 2, 2})}, 0);
  EXPECT_NEAR(effective_rank(both), 1.5, 1e-4);
}

}  // namespace
}  // namespace rondo::test
