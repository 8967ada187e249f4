// Signals at moments that used to lose work: during an evaluation, at start-up, with closed
// outputs.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// Evaluates after its second step, for hours: the validation text is long.
Arguments evaluating(const Trainee& t) {
  std::string text;
  while (text.size() < (size_t{4} << 20)) text += Trainee::sample_text(text.size());
  spill(t.file("long.txt"), text);
  return {"--set", "data.valid=" + t.file("long.txt"),
          "--set", "train.eval_every=2",
          "--set", "train.eval_tokens=0",
          "--set", "train.save_every=1000",
          "--set", "train.steps=12"};
}

// The same, with an evaluation that ends.
Arguments briefly(const Trainee& t) {
  Arguments more = evaluating(t);
  more.insert(more.end(), {"--set", "train.eval_tokens=500"});
  return more;
}

class StoppedEvaluation : public ::testing::TestWithParam<int> {};

TEST_P(StoppedEvaluation, SavesAtOnceAndIsMadeUpFor) {
  const Trainee t;
  Child child(t.command("run", evaluating(t)));
  ASSERT_TRUE(wait_for_steps(t, "run", 2)) << child.err();
  pause_for(0.3);
  EXPECT_FALSE(child.ended()) << child.err();
  const auto begin = std::chrono::steady_clock::now();
  child.send(GetParam());
  EXPECT_EQ(child.wait(), 128 + GetParam()) << child.err();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 10.0) << "the evaluation would take minutes";
  ASSERT_EQ(t.checkpoints("run").size(), 1u);
  EXPECT_EQ(step_of(t.checkpoints("run").back()), 2);
  const Arguments shorter = briefly(t);
  t.train("run", shorter);
  t.train("whole", shorter);
  expect_same_run(t, "run", "whole");
  const auto evaluations = [&](const std::string& run) {
    std::vector<nlohmann::json> lines;
    for (const auto& line : t.metrics(run)) {
      if (line.contains("valid_bits_per_byte")) lines.push_back(line);
    }
    return lines;
  };
  EXPECT_EQ(evaluations("run").size(), 6u);
  EXPECT_EQ(evaluations("run"), evaluations("whole"));
}

INSTANTIATE_TEST_SUITE_P(By, StoppedEvaluation, ::testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto& given) { return std::to_string(given.param); });

TEST(AskedToSave, InAnEvaluationSavesAtOnce) {
  const Trainee t;
  Child child(t.command("run", evaluating(t)));
  ASSERT_TRUE(wait_for_steps(t, "run", 2)) << child.err();
  pause_for(0.2);
  child.send(SIGUSR1);
  ASSERT_TRUE(wait_until([&] { return !t.checkpoints("run").empty(); }, "a checkpoint"));
  EXPECT_EQ(steps_done(t, "run"), 2);
  EXPECT_FALSE(child.ended());
}

TEST(AskedToSave, InStartUpIsNotKilledAndSaves) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_until([&] { return child.starts_up(); }, "the engine"));
  ASSERT_FALSE(child.catches(SIGTERM)) << "start-up is over";
  child.send(SIGUSR1);
  ASSERT_TRUE(wait_until([&] { return child.ended() || !t.checkpoints("run").empty(); }, "a save"));
  ASSERT_FALSE(child.ended()) << child.err();
  EXPECT_EQ(step_of(t.checkpoints("run").back()), 1);
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143);
}

// As nohup starts a program, and a shell its background jobs.
TEST(IgnoredSignals, StayIgnored) {
  const Trainee t;
  const Arguments more = {"--set", "train.steps=40"};
  const Result result =
      in_shell("trap '' HUP INT; " + quoted(t.command("run", more)) +
               " & child=$!; trap - HUP INT; " + "while [ \"$(wc -l <'" +
               t.file("run/metrics.jsonl") + "' 2>/dev/null || echo 0)\" -lt 3 ]; " +
               "do sleep 0.01; done; kill -HUP $child; kill -INT $child; wait $child");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(steps_done(t, "run"), 40);
}

// "rondo train 2>&1 | tee log", and Ctrl-C ends tee first.
TEST(ReaderGone, TheRunGoesOn) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=2"});
  in_shell("{ " + quoted(t.command("run")) + " 2>&1 >/dev/null; echo $? >'" + t.file("code") +
           "'; } | head -n 1");
  EXPECT_EQ(slurp(t.file("code")), "0\n");
  EXPECT_EQ(steps_done(t, "run"), 60);
  EXPECT_EQ(step_of(t.checkpoints("run").back()), 60);
}

}  // namespace
}  // namespace rondo::testing
