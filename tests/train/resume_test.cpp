// Exact resume, in one process: a run that was stopped by a signal or interrupted at any step and
// restarted ends with the same bits as an undisturbed one, and the same lines in its log.
#include "tests/support/shrink.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// Simulates a power failure, as far as one process can.
struct BrokenOff {};

// A language task that is interrupted in the middle of the given step.
class InterruptedTask : public LanguageTask {
 public:
  InterruptedTask(const RunConfig& config, const std::string& cache, int64_t batch, int signal)
      : LanguageTask(config, cache), batch_(batch), signal_(signal) {}
  LossSum next_loss() override {
    const LossSum loss = LanguageTask::next_loss();
    if (++calls_ != batch_) return loss;
    if (signal_ == 0) throw BrokenOff();
    std::raise(signal_);
    return loss;
  }

 private:
  int64_t batch_;
  int signal_;
  int64_t calls_ = 0;
};

// Starts or continues the run and interrupts it in the `batch`-th batch from now.
int train_interrupted(const TrainingFixture& fixture, const RunConfig& config,
                      const std::string& run, int64_t batch, int signal) {
  InterruptedTask task(config, fixture.cache(), batch, signal);
  RunFolder folder(run, config);
  try {
    return train(task, config, folder);
  } catch (const BrokenOff&) {
    return -1;
  }
}

void expect_same_end(const Checkpoint& got, const Checkpoint& want) {
  expect_identical_tensors(got.tensors, want.tensors);
  EXPECT_EQ(got.metadata.at("position"), want.metadata.at("position"));
  auto counters = nlohmann::json::parse(got.metadata.at("counters"));
  auto expected = nlohmann::json::parse(want.metadata.at("counters"));
  counters.erase("seconds");
  expected.erase("seconds");
  EXPECT_EQ(counters, expected);
}

// Everything a run can carry: averages, evaluations, probes, accumulation, dropout.
RunConfig busy_run(const TrainingFixture& fixture, const std::string& optimizer,
                   const std::string& kind) {
  RunConfig config = tiny_run(fixture, kind);
  config.optimizer.kind = optimizer;
  config.optimizer.weight_decay = 0.01;
  config.data.valid = fixture.texts() + "/2.txt";
  config.train.ema = 0.7;
  config.train.accumulate = 2;
  config.train.eval_every = 2;
  config.train.probe_every = 3;
  return config;
}

using OptimizerAndTime = std::tuple<const char*, const char*>;

class ExactResume : public ::testing::TestWithParam<OptimizerAndTime> {
 protected:
  TrainingFixture fixture_;
  RunConfig config_ = busy_run(fixture_, std::get<0>(GetParam()), std::get<1>(GetParam()));

  void expect_undisturbed(const std::string& run) {
    const Checkpoint want = trained(fixture_, config_, "undisturbed");
    EXPECT_FALSE(want.below("average.").empty());
    EXPECT_FALSE(want.below("carried.").empty());
    expect_same_end(newest_checkpoint(run), want);
    const std::string undisturbed = fixture_.run("undisturbed");
    EXPECT_EQ(metrics_of(run), metrics_of(undisturbed));
    EXPECT_EQ(testing::slurp(run + "/best.safetensors"),
              testing::slurp(undisturbed + "/best.safetensors"));
  }
};

TEST_P(ExactResume, AfterASignalAtAStep) {
  const std::string run = fixture_.run("stopped");
  EXPECT_EQ(train_interrupted(fixture_, config_, run, 2 * 3, SIGTERM), 143);
  EXPECT_EQ(CheckpointFolder(run + "/checkpoints").steps(), (std::vector<int64_t>{3}));
  EXPECT_EQ(train_language(fixture_, config_, run), 0);
  expect_undisturbed(run);
}

TEST_P(ExactResume, AfterBeingBrokenOffBetweenSaves) {
  config_.train.save_every = 2;
  const std::string run = fixture_.run("broken");
  // In step 2 (nothing saved yet), in step 4 (step 2 saved), and in the second batch of the last.
  for (const int64_t batch : {3, 7, 8}) {
    EXPECT_EQ(train_interrupted(fixture_, config_, run, batch, 0), -1);
  }
  EXPECT_EQ(train_language(fixture_, config_, run), 0);
  expect_undisturbed(run);
}

INSTANTIATE_TEST_SUITE_P(
    OfEvery, ExactResume,
    ::testing::Combine(::testing::Values("adam", "adamw", "adafactor"),
                       ::testing::Values("window", "block-recurrent", "feedback", "memorizing")),
    [](const auto& given) {
      return test_name(std::string(std::get<0>(given.param)) + "_" + std::get<1>(given.param));
    });

// Wide enough for Adafactor to keep rows and columns.
TEST(ResumeOfFactoredMoments, IsExact) {
  const TrainingFixture fixture;
  RunConfig config = busy_run(fixture, "adafactor", "window");
  language_of(config).width = 128;
  language_of(config).hidden = 160;
  config.train.steps = 4;
  const std::string run = fixture.run("stopped");
  EXPECT_EQ(train_interrupted(fixture, config, run, 2 * 2, SIGINT), 130);
  EXPECT_EQ(train_language(fixture, config, run), 0);
  const Checkpoint want = trained(fixture, config, "undisturbed");
  EXPECT_EQ(want.tensors.count("moment.row.stack.feed_forward.0.up.weight"), 1U);
  expect_same_end(newest_checkpoint(run), want);
}

TEST(Resume, OfAFinishedRunDoesNothing) {
  const TrainingFixture fixture;
  const RunConfig config = busy_run(fixture, "adam", "window");
  const std::string run = fixture.run("run");
  EXPECT_EQ(train_language(fixture, config, run), 0);
  const std::string metrics = testing::slurp(run + "/metrics.jsonl");
  const std::string checkpoint = testing::slurp(run + "/checkpoints/00000006.safetensors");
  EXPECT_EQ(train_language(fixture, config, run), 0);
  EXPECT_EQ(testing::slurp(run + "/metrics.jsonl"), metrics);
  EXPECT_EQ(testing::slurp(run + "/checkpoints/00000006.safetensors"), checkpoint);
}

TEST(Resume, MayTrainForMoreSteps) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  const Checkpoint six = trained(fixture, config, "six");
  config.train.steps = 3;
  const std::string run = fixture.run("three");
  EXPECT_EQ(train_language(fixture, config, run), 0);
  config.train.steps = 6;
  EXPECT_EQ(train_language(fixture, config, run), 0);
  expect_same_end(newest_checkpoint(run), six);
}

TEST(Resume, UsesTheCheckpointBeforeADamagedOne) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  config.train.save_every = 2;
  const Checkpoint want = trained(fixture, config, "undisturbed");
  const std::string run = fixture.run("damaged");
  EXPECT_EQ(train_language(fixture, config, run), 0);
  const CheckpointFolder checkpoints(run + "/checkpoints");
  const std::string whole = testing::slurp(checkpoints.path(6));
  testing::spill(checkpoints.path(6), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(train_language(fixture, config, run), 0);
  EXPECT_EQ(checkpoints.newest()->step, 6);
  expect_same_end(checkpoints.newest()->checkpoint, want);
  EXPECT_EQ(metrics_of(run), metrics_of(fixture.run("undisturbed")));
}

TEST(Resume, OnOtherDocumentsIsRefused) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  const std::string run = fixture.run("run");
  EXPECT_EQ(train_language(fixture, config, run), 0);
  fixture.write(1, "another text than before");
  config.train.steps = 8;
  expect_error(ExitCode::bad_input, "data position", [&] { train_language(fixture, config, run); });
}

}  // namespace
}  // namespace rondo::test
