// The decisions of the training loop: losses that are not finite, choosing the best model,
// stopping, signals, and that a model learns.
#include "rondo/train/trainer.h"

#include <set>

#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// A run of a scripted task in a separate folder.
struct ScriptedRun {
  explicit ScriptedRun(const RunConfig& given)
      : config(given), task(scripted_language(config, 4)) {}
  int go() {
    RunFolder run(path(), config);
    return train(*task, config, run);
  }
  // The same command in a new process.
  int go_again() {
    auto before = std::move(task);
    task = scripted_language(config, 4);
    task->factor = before->factor;
    task->selections = before->selections;
    return go();
  }
  // The distance of the embedding of another run of this script, after `to` steps, from that after
  // `from`.
  double moved(int64_t from, int64_t to) const {
    const auto after = [&](int64_t steps) {
      ScriptedRun other(config);
      other.config.train.steps = steps;
      other.task->factor = task->factor;
      EXPECT_EQ(other.go(), 0);
      return load_checkpoint(CheckpointFolder(other.path() + "/checkpoints").path(steps))
          .tensors.at("weight.embedding");
    };
    return (after(to) - after(from)).abs().max().item<double>();
  }
  std::string path() const { return folder.file("run"); }
  std::vector<int64_t> steps() const { return CheckpointFolder(path() + "/checkpoints").steps(); }

  testing::TempDir folder;
  QuietLog quiet;
  RunConfig config;
  std::unique_ptr<ScriptedTask> task;
};

RunConfig steps_of(int64_t steps) {
  RunConfig config = scripted_run();
  config.train.steps = steps;
  return config;
}

NamedTensors weights_at(const ScriptedRun& run, int64_t step) {
  return load_checkpoint(CheckpointFolder(run.path() + "/checkpoints").path(step)).below("weight.");
}

// ---- losses that are not finite ---------------------------------------------------------------

TEST(NonFiniteLoss, IsSkippedAndCounted) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    ScriptedRun run(steps_of(8));
    run.task->factor = [bad](int64_t call) { return call == 3 || call == 4 ? bad : 1.0; };
    EXPECT_EQ(run.go(), 0);
    EXPECT_EQ(run.steps(), (std::vector<int64_t>{1, 2, 5, 6, 7, 8})) << "no save in a bad row";
    EXPECT_EQ(run.moved(2, 3), 0.0);
    EXPECT_EQ(run.moved(2, 4), 0.0);
    EXPECT_GT(run.moved(2, 5), 1e-3);
    EXPECT_EQ(run.task->forgotten, (std::vector<int64_t>{3, 4}));
    const auto lines = metrics_of(run.path());
    ASSERT_EQ(lines.size(), 8U);
    EXPECT_TRUE(lines[2].at("loss").is_null());
    EXPECT_EQ(lines[2].at("skipped"), 1);
    EXPECT_EQ(lines[7].at("skipped"), 2);
    EXPECT_GT(lines[7].at("loss"), 0.0);
  }
}

TEST(NonFiniteLoss, OfOneAccumulatedBatchSkipsTheWholeStep) {
  RunConfig config = steps_of(3);
  config.train.accumulate = 2;
  ScriptedRun run(config);
  run.task->factor = [](int64_t call) { return call == 3 ? NAN : 1.0; };
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.moved(1, 2), 0.0);
  EXPECT_GT(run.moved(1, 3), 1e-3);
  EXPECT_EQ(run.task->forgotten, (std::vector<int64_t>{3})) << "only the batch that was spoilt";
}

TEST(NonFiniteLoss, FourInARowAreNotTheEnd) {
  ScriptedRun run(steps_of(12));
  run.task->factor = [](int64_t call) { return call % 6 < 4 ? NAN : 1.0; };
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(metrics_of(run.path()).back().at("skipped"), 8);
}

TEST(NonFiniteLoss, FiveInARowEndTheRunWithTheLastGoodCheckpointKept) {
  RunConfig config = steps_of(20);
  config.train.save_every = 4;
  config.train.keep = 1;
  ScriptedRun run(config);
  run.task->factor = [](int64_t call) { return call > 6 ? NAN : 1.0; };
  const Error error = error_of([&] { run.go(); });
  EXPECT_EQ(error.code(), ExitCode::diverged);
  EXPECT_EQ(error.message(), "training diverged: 5 losses in a row were not finite");
  for (const char* part :
       {"the checkpoint of step 4 is good", "--set schedule.rate=0.005", "--set train.clip=1"}) {
    EXPECT_NE(error.advice().find(part), std::string::npos) << error.advice();
  }
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{4})) << "step 8 is in the bad row";
  expect_error(ExitCode::diverged, "5 losses", [&] { run.go_again(); });
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{4}));
  // The advice is possible, and recorded.
  run.config.schedule.rate = 0.005;
  run.task->factor = nullptr;
  EXPECT_EQ(run.go_again(), 0);
  EXPECT_EQ(metrics_of(run.path()).back().at("rate"), 0.005);
  const std::string noted = testing::slurp(run.path() + "/changes.jsonl");
  EXPECT_NE(noted.find(R"("key":"schedule.rate","now":"0.005","step":4)"), std::string::npos)
      << noted;
}

TEST(NonFiniteLoss, PutsASaveOffToTheNextGoodStep) {
  RunConfig config = steps_of(9);
  config.train.save_every = 4;
  ScriptedRun run(config);
  run.task->factor = [](int64_t call) { return call == 3 || call == 4 ? NAN : 1.0; };
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{5, 8, 9}));
}

TEST(NonFiniteLoss, WhenASignalComesLeavesTheLastGoodCheckpoint) {
  RunConfig config = steps_of(9);
  config.train.save_every = 2;
  ScriptedRun run(config);
  run.task->factor = [](int64_t call) { return call == 3 || call == 4 ? NAN : 1.0; };
  run.task->before = [](int64_t call) {
    if (call == 4) std::raise(SIGTERM);
  };
  EXPECT_EQ(run.go(), 143);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{2}));
  EXPECT_EQ(run.go_again(), 0);
  EXPECT_EQ(metrics_of(run.path()).size(), 9U);
}

// At this rate a step leaves infinite weights although its own loss is finite.
TEST(NonFiniteWeights, AreNeverSaved) {
  for (const int64_t steps : {3, 20}) {  // as the last step, and in the middle
    RunConfig config = steps_of(2);
    config.train.keep = 1;
    ScriptedRun run(config);
    EXPECT_EQ(run.go(), 0);
    const std::string best = testing::slurp(run.path() + "/best.safetensors");
    run.config.train.steps = steps;
    run.config.schedule.rate = 1e39;
    const Error error = error_of([&] { run.go_again(); });
    EXPECT_EQ(error.code(), ExitCode::diverged) << error.what();
    EXPECT_NE(error.message().find("at step 3 weights are not finite"), std::string::npos)
        << error.what();
    EXPECT_EQ(run.steps(), (std::vector<int64_t>{2}));
    EXPECT_EQ(testing::slurp(run.path() + "/best.safetensors"), best);
  }
}

// A state that is not finite is not carried on, whichever batch produced it.
TEST(NonFiniteLoss, DoesNotStayInTheCarriedState) {
  const TrainingFixture fixture({200, 200, 200});
  RunConfig config = tiny_run(fixture);
  LanguageTask task(config, fixture.cache());
  task.network().train();
  task.next_loss();
  const NamedTensors good = task.carried();
  task.next_loss();
  task.forget_last();
  expect_identical(task.carried().at("level.1.state"), good.at("level.1.state"));
  NamedTensors spoilt = good;
  spoilt["level.1.state"] = at::full_like(spoilt["level.1.state"], NAN);
  task.restore(task.position(), spoilt, /*other_rows=*/false);
  EXPECT_FALSE(std::isfinite(task.next_loss().sum.item<double>()));
  task.forget_last();
  EXPECT_TRUE(std::isfinite(task.next_loss().sum.item<double>()));
  EXPECT_TRUE(at::isfinite(task.carried().at("level.1.state")).all().item<bool>());
}

// ---- the best model ---------------------------------------------------------------------------

TEST(BestModel, IsThatOfTheLowestSelection) {
  RunConfig config = steps_of(6);
  config.train.eval_every = 1;
  ScriptedRun run(config);
  run.task->selections = {5.0, 3.0, 4.0, 2.5, 2.5, 9.0};
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.task->evaluations, 6U);
  expect_identical_tensors(load_tensors(run.path() + "/best.safetensors"), weights_at(run, 4));
  const auto lines = metrics_of(run.path());
  ASSERT_EQ(lines.size(), 12U);
  EXPECT_EQ(lines[7].at("valid"), 2.5);
  EXPECT_EQ(lines[7].at("step"), 4);
}

TEST(BestModel, IsTheAverageThatWasEvaluated) {
  RunConfig config = steps_of(4);
  config.train.eval_every = 2;
  config.train.ema = 0.5;
  ScriptedRun run(config);
  run.task->selections = {3.0, 2.0};
  EXPECT_EQ(run.go(), 0);
  const NamedTensors best = load_tensors(run.path() + "/best.safetensors");
  expect_identical_tensors(run.task->evaluated, best);
  const auto path = CheckpointFolder(run.path() + "/checkpoints").path(4);
  expect_identical_tensors(load_checkpoint(path).below("average."), best);
}

TEST(BestModel, WithoutValidationIsTheLast) {
  ScriptedRun run(steps_of(3));
  EXPECT_EQ(run.go(), 0);
  expect_identical_tensors(load_tensors(run.path() + "/best.safetensors"), weights_at(run, 3));
  const ResolvedModel resolved = resolve_model(run.path() + "/best.safetensors", {});
  EXPECT_EQ(dump_model_config(resolved.config), dump_model_config(run.config.model));
}

TEST(BestModel, IsEvaluatedAtTheLastStepWhateverTheInterval) {
  RunConfig config = steps_of(5);
  config.train.eval_every = 3;
  ScriptedRun run(config);
  run.task->selections = {1.0};
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.task->evaluations, 2U);
}

// ---- patience ---------------------------------------------------------------------------------

TEST(Patience, StopsAfterThatManyEvaluationsWithoutABetterOne) {
  RunConfig config = steps_of(50);
  config.train.eval_every = 2;
  config.train.patience = 3;
  config.train.save_every = 1000;
  ScriptedRun run(config);
  run.task->selections = {5.0, 4.0, 4.5, 4.0, 3.0, 3.1, 3.2, 3.3, 1.0};
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.task->evaluations, 8U);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{16}));
  // The same command does not continue training; with more patience it does.
  EXPECT_EQ(run.go_again(), 0);
  EXPECT_EQ(run.task->evaluations, 0U);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{16}));
  run.config.train.patience = 4;
  run.task->selections = {7.0};
  EXPECT_EQ(run.go_again(), 0);
  EXPECT_EQ(run.steps().back(), 18);
}

// ---- signals ----------------------------------------------------------------------------------

TEST(Signals, FinishTheStepSaveAndLeave) {
  for (const auto& [signal, code] : {std::make_pair(SIGTERM, 143), std::make_pair(SIGINT, 130)}) {
    RunConfig config = steps_of(9);
    config.train.save_every = 1000;
    ScriptedRun run(config);
    run.task->before = [number = signal](int64_t call) {
      if (call == 4) std::raise(number);
    };
    EXPECT_EQ(run.go(), code);
    EXPECT_EQ(run.steps(), (std::vector<int64_t>{4}));
    EXPECT_EQ(metrics_of(run.path()).back().at("step"), 4);
  }
}

TEST(Signals, AskForASaveAndTheRunGoesOn) {
  RunConfig config = steps_of(9);
  config.train.save_every = 1000;
  ScriptedRun run(config);
  run.task->before = [](int64_t call) {
    if (call == 2 || call == 6) std::raise(SIGUSR1);
  };
  EXPECT_EQ(run.go(), 0);
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{2, 6, 9}));
}

TEST(Signals, OfAHangUpAreAsTheOthers) {
  RunConfig config = steps_of(9);
  config.train.save_every = 1000;
  ScriptedRun run(config);
  run.task->before = [](int64_t call) {
    if (call != 4) return;
    for (const int signal : {SIGHUP, SIGHUP, SIGTERM, SIGHUP}) std::raise(signal);
  };
  EXPECT_EQ(run.go(), 143) << "a hang-up is no second signal";
  EXPECT_EQ(run.steps(), (std::vector<int64_t>{4}));
}

// ---- randomness -------------------------------------------------------------------------------

// What torch's generator gives in each step.
std::vector<double> draws_of(int64_t steps, int64_t seed) {
  RunConfig config = steps_of(steps);
  config.train.seed = seed;
  ScriptedRun run(config);
  std::vector<double> draws;
  run.task->before = [&](int64_t) { draws.push_back(at::rand({1}, at::kDouble).item<double>()); };
  EXPECT_EQ(run.go(), 0);
  return draws;
}

TEST(RandomDraws, AreAFunctionOfSeedAndStep) {
  const std::vector<double> draws = draws_of(6, 1);
  EXPECT_EQ(std::set<double>(draws.begin(), draws.end()).size(), 6U);
  at::rand({17});
  EXPECT_EQ(draws_of(6, 1), draws);
  const std::vector<double> other = draws_of(6, 2);
  for (size_t i = 0; i < 6; ++i) EXPECT_NE(other[i], draws[i]);
}

// ---- learning ---------------------------------------------------------------------------------

TEST(Learning, ARepetitiveTextIsLearned) {
  for (const char* optimizer : {"adam", "adamw", "adafactor"}) {
    TrainingFixture fixture(std::vector<int64_t>{});
    std::string text;
    for (int i = 0; i < 60; ++i) text += "round and round; ";
    fixture.write(0, text);
    RunConfig config = tiny_run(fixture);
    config.optimizer.kind = optimizer;
    config.train.steps = 80;
    config.schedule.rate = 0.03;
    EXPECT_EQ(train_language(fixture, config, fixture.run("run")), 0);
    const auto lines = metrics_of(fixture.run("run"));
    EXPECT_GT(lines.front().at("loss"), 4.5) << optimizer;
    EXPECT_LT(lines.back().at("loss"), 1.0) << optimizer;
  }
}

TEST(DryRun, MeasuresWithoutChangingAnything) {
  const RunConfig config = steps_of(9);
  const auto task = scripted_language(config, 4);
  NamedTensors before;
  for (const auto& [name, tensor] : named_tensors(task->network())) {
    before[name] = tensor.detach().clone();
  }
  const DryRun measured = dry_run(*task, config);
  EXPECT_GT(measured.seconds_per_step, 0.0);
  EXPECT_LT(measured.seconds_per_step, 30.0);
  EXPECT_GT(measured.peak_bytes, int64_t{1} << 20);
  NamedTensors after;
  for (const auto& [name, tensor] : named_tensors(task->network())) after[name] = tensor.detach();
  expect_identical_tensors(after, before);
}

}  // namespace
}  // namespace rondo::test
