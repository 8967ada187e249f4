// Signals before or during an evaluation: the step is saved at once and the evaluation is done
// later, so that nothing differs from an undisturbed run.
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// Eight steps, with an evaluation every second step.
RunConfig evaluated_run() {
  RunConfig config = scripted_run();
  config.train.steps = 8;
  config.train.eval_every = 2;
  config.train.save_every = 1000;
  config.train.patience = 3;
  return config;
}

const std::vector<double> kSelections = {5.0, 3.0, 4.0, 2.0};

struct EvaluatedRun {
  explicit EvaluatedRun(const RunConfig& given = evaluated_run()) : config(given) { renew(); }
  void renew(size_t evaluated = 0) {
    task = scripted_language(config, 4);
    task->selections = kSelections;
    task->evaluations = evaluated;
  }
  int go() {
    RunFolder run(path(), config);
    return train(*task, config, run);
  }
  std::string path() const { return folder.file("run"); }
  std::vector<int64_t> steps() const { return CheckpointFolder(path() + "/checkpoints").steps(); }
  bool evaluation_due() const {
    const auto counters = nlohmann::json::parse(newest_checkpoint(path()).metadata.at("counters"));
    return counters.at("evaluation_due");
  }

  testing::TempDir folder;
  QuietLog quiet;
  RunConfig config;
  std::unique_ptr<ScriptedTask> task;
};

void expect_same_runs(const EvaluatedRun& got, const EvaluatedRun& want) {
  expect_identical_tensors(newest_checkpoint(got.path()).tensors,
                           newest_checkpoint(want.path()).tensors);
  auto counters = nlohmann::json::parse(newest_checkpoint(got.path()).metadata.at("counters"));
  auto expected = nlohmann::json::parse(newest_checkpoint(want.path()).metadata.at("counters"));
  counters.erase("seconds");
  expected.erase("seconds");
  EXPECT_EQ(counters, expected);
  EXPECT_EQ(metrics_of(got.path()), metrics_of(want.path()));
  EXPECT_EQ(testing::slurp(got.path() + "/best.safetensors"),
            testing::slurp(want.path() + "/best.safetensors"));
}

EvaluatedRun& undisturbed() {
  static auto* run = [] {
    auto* made = new EvaluatedRun;
    EXPECT_EQ(made->go(), 0);
    EXPECT_EQ(made->task->evaluations, 4U);
    return made;
  }();
  return *run;
}

// The evaluation in the middle, and the last one.
class BrokenEvaluation : public ::testing::TestWithParam<int64_t> {};

TEST_P(BrokenEvaluation, IsSavedAndMadeUpFor) {
  const int64_t step = GetParam();
  const auto before = static_cast<size_t>(step / 2 - 1);
  EvaluatedRun run;
  run.task->in_evaluation = [&](int64_t call, int64_t batch) {
    if (call == step && batch == 2) std::raise(SIGTERM);
  };
  EXPECT_EQ(run.go(), 143);
  EXPECT_EQ(run.task->evaluations, before) << "it did not come to its end";
  EXPECT_EQ(run.task->evaluated_batches, static_cast<int64_t>(3 * before + 2));
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{step}));
  EXPECT_TRUE(run.evaluation_due());
  EXPECT_EQ(metrics_of(run.path()).back().count("valid"), 0U) << "half of it is not logged";
  run.renew(before);
  EXPECT_EQ(run.go(), 0);
  expect_same_runs(run, undisturbed());
}

TEST_P(BrokenEvaluation, IsNotBegunWhenTheSignalCameInTheStep) {
  const int64_t step = GetParam();
  const auto before = static_cast<size_t>(step / 2 - 1);
  EvaluatedRun run;
  run.task->before = [&](int64_t call) {
    if (call == step) std::raise(SIGINT);
  };
  EXPECT_EQ(run.go(), 130);
  EXPECT_EQ(run.task->evaluated_batches, static_cast<int64_t>(3 * before));
  EXPECT_TRUE(run.evaluation_due());
  // Stopped again while the evaluation is repeated.
  run.renew(before);
  run.task->in_evaluation = [&](int64_t, int64_t) { std::raise(SIGTERM); };
  EXPECT_EQ(run.go(), 143);
  EXPECT_TRUE(run.evaluation_due());
  run.renew(before);
  EXPECT_EQ(run.go(), 0);
  expect_same_runs(run, undisturbed());
}

INSTANTIATE_TEST_SUITE_P(AtStep, BrokenEvaluation, ::testing::Values(4, 8));

// Killed after the evaluation was logged but before the next checkpoint: no line twice.
TEST(BrokenEvaluation, IsLoggedOnce) {
  EvaluatedRun run;
  run.task->before = [&](int64_t call) {
    if (call == 4) std::raise(SIGTERM);
  };
  EXPECT_EQ(run.go(), 143);
  {
    std::ofstream out(run.path() + "/metrics.jsonl", std::ios::app);
    out << R"({"step":4,"valid":3.0})"
        << "\n";
  }
  run.renew(1);
  EXPECT_EQ(run.go(), 0);
  expect_same_runs(run, undisturbed());
}

// A run that is extended has no evaluation at what was its last step.
TEST(BrokenEvaluation, OfALastStepThatIsNoLongerTheLastIsNotDue) {
  RunConfig config = evaluated_run();
  config.train.steps = 3;
  EvaluatedRun run(config);
  run.task->before = [&](int64_t call) {
    if (call == 3) std::raise(SIGTERM);
  };
  EXPECT_EQ(run.go(), 143);
  EXPECT_TRUE(run.evaluation_due());
  run.config.train.steps = 8;
  run.renew(1);
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(metrics_of(run.path()), metrics_of(undisturbed().path()));
}

TEST(BrokenEvaluation, MakesRoomForASaveAndBeginsAgain) {
  EvaluatedRun run;
  std::vector<std::vector<int64_t>> saved;
  run.task->in_evaluation = [&](int64_t call, int64_t batch) {
    if (call == 4) saved.push_back(run.steps());
    if (call == 4 && batch == 2) std::raise(SIGUSR1);  // each time this point is reached
  };
  EXPECT_EQ(run.go(), 0);
  const std::vector<int64_t> none;
  const std::vector<int64_t> four = {4};
  EXPECT_EQ(saved, (std::vector<std::vector<int64_t>>{none, none, four, four, four}));
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{4, 8}));
  expect_same_runs(run, undisturbed());
}

TEST(BrokenEvaluation, StopsBetweenBatches) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  config.data.valid = fixture.texts() + "/2.txt";
  LanguageTask task(config, fixture.cache());
  expect_stops_between_batches(task);
}

}  // namespace
}  // namespace rondo::test
