// Signals to a training process, and a second trainer of the same run.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

class StoppedTraining : public ::testing::TestWithParam<int> {};

TEST_P(StoppedTraining, SavesItsLastStepAndCanGoOn) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 5)) << child.err();
  EXPECT_TRUE(t.checkpoints("run").empty());
  child.send(GetParam());
  EXPECT_EQ(child.wait(), 128 + GetParam()) << child.err();
  EXPECT_FALSE(child.died_of(GetParam())) << "it left by itself";
  ASSERT_EQ(t.checkpoints("run").size(), 1u);
  const int64_t step = step_of(t.checkpoints("run").back());
  EXPECT_EQ(step, steps_done(t, "run"));
  EXPECT_TRUE(contains(child.err(), "stopped by a signal at step " + std::to_string(step)));

  const std::string more = "train.steps=" + std::to_string(step + 4);
  const Result again = t.train("run", {"--set", more});
  EXPECT_TRUE(contains(again.err, "continuing from step " + std::to_string(step))) << again.err;
  t.train("whole", {"--set", more});
  expect_same_run(t, "run", "whole");
}

INSTANTIATE_TEST_SUITE_P(By, StoppedTraining, ::testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto& given) {
                           return given.param == SIGTERM  ? "SIGTERM"
                                  : given.param == SIGINT ? "SIGINT"
                                                          : "SIGHUP";
                         });

TEST(AskedToSave, TheRunSavesAndGoesOn) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 3)) << child.err();
  child.send(SIGUSR1);
  ASSERT_TRUE(wait_until([&] { return !t.checkpoints("run").empty(); }, "a checkpoint"));
  const int64_t saved = step_of(t.checkpoints("run").back());
  ASSERT_TRUE(wait_for_steps(t, "run", saved + 3));
  EXPECT_FALSE(child.ended());
  EXPECT_EQ(t.checkpoints("run").size(), 1u);
  EXPECT_GT(below(read_arrays(t.checkpoints("run").back()), "weight.").size(), 10u);
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143);
}

// With steps of many minutes: after the first signal the step is finished, the second ends it at
// once.
TEST(StoppedTwice, TheRunEndsAtOnceWithoutSaving) {
  const Trainee t;
  Child child(t.command("run", {"--set", "train.accumulate=1000000"}));
  ASSERT_TRUE(wait_until([&] { return child.catches(SIGTERM); }, "its handler")) << child.err();
  child.send(SIGTERM);
  pause_for(0.5);
  EXPECT_FALSE(child.ended()) << "it finishes its step";
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143);
  EXPECT_TRUE(t.checkpoints("run").empty());
}

TEST(ASecondTrainer, IsTurnedAway) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 2)) << child.err();
  expect_refusal(rondo(t.command("run", kEndless)), ExitCode::busy,
                 t.file("run") + ": another trainer is using this folder");
  EXPECT_FALSE(child.ended());
  const int64_t before = steps_done(t, "run");
  ASSERT_TRUE(wait_for_steps(t, "run", before + 2)) << "the first goes on";
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143);
  t.train("run", {"--set", "train.steps=" + std::to_string(steps_done(t, "run") + 1)});
}

}  // namespace
}  // namespace rondo::testing
