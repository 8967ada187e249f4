// The folder of a run: one trainer at a time, one experiment, no line of its log twice or missing.
#include "rondo/train/run_folder.h"

#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

TEST(RunFolders, AreHeldByOneTrainer) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  {
    const RunFolder first(place.file("run"), config);
    expect_error(ExitCode::busy, place.file("run") + ": another trainer is at work",
                 [&] { RunFolder(place.file("run"), config); });
    const RunFolder other(place.file("other"), config);
  }
  const RunFolder later(place.file("run"), config);  // free again
}

TEST(RunFolders, SayWhereTheyCannotBe) {
  const testing::TempDir place;
  testing::spill(place.file("taken"), "a file");
  expect_error(ExitCode::io, place.file("taken") + "/run: cannot make the run folder",
               [&] { RunFolder(place.file("taken") + "/run", scripted_run()); });
  expect_error(ExitCode::bad_input, "not a run folder", [&] { read_run_folder(place.path()); });
}

TEST(RunFolders, KeepTheWholeExperiment) {
  const testing::TempDir place;
  RunConfig config = scripted_run();
  config.data.train = "some \"quoted\" folder";
  config.train.seed = 77;
  config.schedule.final_rate = 0.125;
  { const RunFolder folder(place.path(), config); }
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

TEST(RunFolders, OfAnotherExperimentAreRefusedWithTheKey) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  { const RunFolder folder(place.path(), config); }
  const auto refused = [&](const std::string& part, const auto& change) {
    RunConfig other = config;
    change(other);
    expect_error(ExitCode::bad_input, part, [&] { RunFolder(place.path(), other); });
  };
  refused("expected width = 16, got width = 24", [](RunConfig& c) { language_of(c).width = 24; });
  refused("expected seed = 1, got seed = 2", [](RunConfig& c) { c.train.seed = 2; });
  refused("expected batch = 8, got batch = 4", [](RunConfig& c) { c.train.batch = 4; });
  refused("expected kind = \"adam\", got kind = \"adamw\"",
          [](RunConfig& c) { c.optimizer.kind = "adamw"; });
  refused("expected rate = 0.01, got rate = 0.02", [](RunConfig& c) { c.schedule.rate = 0.02; });
  refused("got train = \"elsewhere\"", [](RunConfig& c) { c.data.train = "elsewhere"; });
  refused("the folder holds another experiment",
          [](RunConfig& c) { c.model = ModelConfig{VisionConfig()}; });
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

TEST(RunFolders, MayGoOnWithOtherIntervals) {
  const testing::TempDir place;
  RunConfig config = scripted_run();
  { const RunFolder folder(place.path(), config); }
  config.train.steps = 99;
  config.train.threads = 1;
  config.train.log_every = 7;
  config.train.eval_every = 8;
  config.train.eval_tokens = 9;
  config.train.save_every = 10;
  config.train.keep = 11;
  config.train.patience = 12;
  config.train.probe_every = 13;
  const RunFolder folder(place.path(), config);
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

TEST(RunMetrics, AreRewoundToAStep) {
  const testing::TempDir place;
  RunFolder folder(place.path(), scripted_run());
  for (int64_t step = 1; step <= 6; ++step) {
    folder.log(step, {{"loss", 1.0 / static_cast<double>(step)}, {"bad", NAN}});
    if (step % 2 == 0) folder.log(step, {{"valid", 0.5}});
  }
  const std::string before = testing::slurp(place.file("metrics.jsonl"));
  EXPECT_EQ(metrics_of(place.path()).size(), 9U);
  EXPECT_TRUE(metrics_of(place.path())[0].at("bad").is_null());
  // A line that was being written when the process was killed.
  testing::spill(place.file("metrics.jsonl"), before + R"({"step":7,"lo)");
  folder.rewind_metrics(6);
  EXPECT_EQ(testing::slurp(place.file("metrics.jsonl")), before);
  folder.rewind_metrics(4);
  const auto lines = metrics_of(place.path());
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back().at("step"), 4);
  EXPECT_EQ(lines.back().at("valid"), 0.5);
  folder.rewind_metrics(0);
  EXPECT_EQ(testing::slurp(place.file("metrics.jsonl")), "");
}

TEST(RunFolders, LoseWhatAKilledTrainerWasWriting) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  { const RunFolder folder(place.path(), config); }
  std::filesystem::create_directories(place.file("checkpoints"));
  const std::vector<std::string> left = {place.file(".config.toml.77-0.tmp"),
                                         place.file("checkpoints/.00000004.safetensors.77-3.tmp")};
  for (const std::string& file : left) testing::spill(file, "half");
  testing::spill(place.file("notes.tmp"), "the user's own");
  const RunFolder folder(place.path(), config);
  for (const std::string& file : left) EXPECT_FALSE(std::filesystem::exists(file)) << file;
  EXPECT_TRUE(std::filesystem::exists(place.file("notes.tmp")));
}

}  // namespace
}  // namespace rondo::test
