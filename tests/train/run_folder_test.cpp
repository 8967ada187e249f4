// The folder of a run: one trainer at a time, one experiment, every log line exactly once.
#include "rondo/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

#include "tests/support/event_file.h"
#include "tests/train/file_size_limit.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

TEST(RunFolders, AreHeldByOneTrainer) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  {
    const RunFolder first(place.file("run"), config);
    expect_error(ExitCode::busy, place.file("run") + ": another trainer is using",
                 [&] { RunFolder(place.file("run"), config); });
    const RunFolder other(place.file("other"), config);
  }
  const RunFolder later(place.file("run"), config);  // unlocked
}

TEST(RunFolders, SayWhereTheyCannotBe) {
  const testing::TempDir place;
  testing::spill(place.file("taken"), "a file");
  expect_error(ExitCode::io, place.file("taken") + "/run: cannot create the run folder",
               [&] { RunFolder(place.file("taken") + "/run", scripted_run()); });
  expect_error(ExitCode::bad_input, "not a run folder", [&] { read_run_folder(place.path()); });
}

TEST(RunFolders, KeepTheWholeExperiment) {
  const testing::TempDir place;
  RunConfig config = scripted_run();
  config.data.train = "some \"quoted\" folder";
  config.train.seed = 77;
  config.schedule.final_rate = 0.125;
  RunFolder(place.path(), config).begin({});
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

TEST(RunFolders, OfAnotherExperimentAreRefusedWithTheKey) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  RunFolder(place.path(), config).begin({});
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
  refused("expected beta1 = 0.9, got beta1 = 0.8", [](RunConfig& c) { c.optimizer.beta1 = 0.8; });
  refused("expected ema = 0.0, got ema = 0.5", [](RunConfig& c) { c.train.ema = 0.5; });
  refused("the folder contains another experiment",
          [](RunConfig& c) { c.model = ModelConfig{VisionConfig()}; });
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

// If it is deleted, a second trainer must still be kept out; if it is held by a trainer that locks
// nothing else (another version, NFS), it must keep this one out.
TEST(RunFolders, AreHeldWithAndWithoutTheLockFile) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  {
    const RunFolder first(place.path(), config);
    std::filesystem::remove(place.file("lock"));
    expect_error(ExitCode::busy, "another trainer is using",
                 [&] { RunFolder(place.path(), config); });
  }
  { const RunFolder later(place.path(), config); }
  const int held = open(place.file("lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  expect_error(ExitCode::busy, "another trainer is using",
               [&] { RunFolder(place.path(), config); });
  close(held);
}

TEST(RunFolders, AreUntouchedBeforeTheRunBegins) {
  const testing::TempDir place;
  RunConfig config = scripted_run();
  RunFolder(place.path(), config).begin({});
  testing::spill(place.file(".config.toml.77-0.tmp"), "half");
  const int64_t files = place.count();
  config.train.steps = 99;
  const RunFolder folder(place.path(), config);
  EXPECT_EQ(place.count(), files);
  EXPECT_EQ(read_run_folder(place.path()).train.steps, 1);
}

TEST(RunFolders, KnowWhenTheyWereMoved) {
  const testing::TempDir place;
  RunFolder folder(place.file("run"), scripted_run());
  EXPECT_TRUE(folder.in_place());
  std::filesystem::rename(place.file("run"), place.file("moved"));
  EXPECT_FALSE(folder.in_place());
  std::filesystem::create_directories(place.file("run"));
  EXPECT_FALSE(folder.in_place()) << "another folder of the same name is another folder";
  folder.follow();
  EXPECT_EQ(folder.path(), place.file("moved"));
  EXPECT_TRUE(folder.in_place());
  std::filesystem::remove_all(place.file("moved"));
  EXPECT_FALSE(folder.in_place());
  expect_error(ExitCode::io, "the run folder was removed", [&] { folder.follow(); });
}

TEST(RunFolders, NoteWhatWasChanged) {
  const testing::TempDir place;
  const QuietLog quiet;
  RunConfig config = scripted_run();
  RunFolder(place.path(), config).begin({});
  EXPECT_FALSE(std::filesystem::exists(place.file("changes.jsonl")));
  config.schedule.rate = 0.005;
  config.train.clip = 0.5;
  RunFolder(place.path(), config).begin({7}, {{"threads", "2", "1"}});
  RunFolder(place.path(), config).begin({3});  // rewound to before: earlier records are kept
  std::istringstream in(testing::slurp(place.file("changes.jsonl")));
  std::vector<std::string> noted;
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("step"), 7);
    EXPECT_EQ(json.at("time").get<std::string>().size(), 20U);
    noted.push_back(json.at("key").get<std::string>() + " " + json.at("before").get<std::string>() +
                    " " + json.at("now").get<std::string>());
  }
  EXPECT_EQ(noted, (std::vector<std::string>{"train.clip 0.0 0.5", "schedule.rate 0.01 0.005",
                                             "threads 2 1"}));
}

// Each of them may be changed, and each is an existing key.
TEST(RunFolders, NameWhatMayBeChanged) {
  std::set<std::string> known;
  for (const char* task : {"lm", "translation", "image"}) {
    for (const char* section : {"data", "train", "optimizer", "schedule", "distill"}) {
      for (const FieldHelp& field : run_config_help(section, task)) {
        known.insert(std::string(section) + "." + field.key);
      }
    }
  }
  for (const std::string& key : changeable_keys()) EXPECT_EQ(known.count(key), 1U) << key;
}

TEST(RunFolders, MayGoOnWithOtherIntervals) {
  const testing::TempDir place;
  RunConfig config = scripted_run();
  RunFolder(place.path(), config).begin({});
  config.train.steps = 99;
  config.train.threads = 1;
  config.train.log_every = 7;
  config.train.eval_every = 8;
  config.train.eval_tokens = 9;
  config.train.save_every = 10;
  config.train.keep = 11;
  config.train.patience = 12;
  config.train.probe_every = 13;
  RunFolder(place.path(), config).begin({});
  EXPECT_EQ(dump_run_config(read_run_folder(place.path())), dump_run_config(config));
}

// The lines after a restart that continues from `place`.
std::vector<nlohmann::json> rewound(const testing::TempDir& run, const RunPlace& place) {
  RunFolder(run.path(), scripted_run()).begin(place);
  return metrics_of(run.path());
}

TEST(RunMetrics, AreRewoundToAStep) {
  const testing::TempDir place;
  {
    RunFolder folder(place.path(), scripted_run());
    folder.begin({});
    for (int64_t step = 1; step <= 6; ++step) {
      folder.log(step, {{"loss", 1.0 / static_cast<double>(step)}, {"rate", 0.5}, {"bad", NAN}});
      if (step % 2 == 0) folder.log(step, {{"valid", 0.5}});
    }
  }
  const std::string before = testing::slurp(place.file("metrics.jsonl"));
  EXPECT_EQ(metrics_of(place.path()).size(), 9U);
  EXPECT_TRUE(metrics_of(place.path())[0].at("bad").is_null());
  // A line that was being written when the process was killed.
  testing::spill(place.file("metrics.jsonl"), before + R"({"step":7,"lo)");
  rewound(place, {6});
  EXPECT_EQ(testing::slurp(place.file("metrics.jsonl")), before);
  const auto lines = rewound(place, {4});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back().at("step"), 4);
  EXPECT_EQ(lines.back().at("valid"), 0.5);
  // The evaluation of the step will be repeated, the step itself will not.
  const auto without = rewound(place, {4, /*evaluation_due=*/true});
  ASSERT_EQ(without.size(), 5U);
  EXPECT_EQ(without.back().at("step"), 4);
  EXPECT_EQ(without.back().count("valid"), 0U);
  rewound(place, {});
  EXPECT_EQ(testing::slurp(place.file("metrics.jsonl")), "");
}

TEST(RunMetrics, ThatCannotBeReadAreLeftAlone) {
  const testing::TempDir place;
  RunFolder(place.path(), scripted_run()).begin({});
  std::filesystem::create_directories(place.file("metrics.jsonl/inside"));
  RunConfig longer = scripted_run();
  longer.train.steps = 9;
  RunFolder folder(place.path(), longer);
  expect_error(ExitCode::io, "metrics.jsonl: cannot read", [&] { folder.begin({}); });
  EXPECT_TRUE(std::filesystem::exists(place.file("metrics.jsonl/inside")));
  EXPECT_EQ(read_run_folder(place.path()).train.steps, 1) << "nor is the experiment another";
}

TEST(RunMetrics, ThatCannotBeWrittenAreSaidOnceAMinute) {
  const testing::TempDir place;
  RunFolder folder(place.path(), scripted_run());
  folder.begin({});
  std::filesystem::create_symlink("/dev/full", place.file("metrics.jsonl"));
  ::testing::internal::CaptureStderr();
  for (int64_t step = 1; step <= 9; ++step) folder.log(step, {{"loss", 1.0}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("metrics.jsonl: cannot write: No space left on device"), std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Lines of metrics.jsonl, and what is said, still fit below the limit that the event file meets.
TEST(RunMetrics, EventsThatCannotBeWrittenAreSaidToo) {
  const testing::TempDir place;
  RunFolder folder(place.path(), scripted_run());
  folder.begin({});
  const std::string events = testing::event_files(place.path()).at(0);
  std::ofstream(events, std::ios::app) << std::string(4000, '.');
  const std::string before = testing::slurp(events);
  ::testing::internal::CaptureStderr();
  {
    const FileSizeLimit limit(before.size() + 1);
    for (int64_t step = 1; step <= 2; ++step) folder.log(step, {{"loss", 1.0}});
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(events + ": cannot write: File too large"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(metrics_of(place.path()).size(), 2U);
  EXPECT_EQ(testing::slurp(events), before) << "no half of a record";
}

TEST(RunFolders, LoseWhatAKilledTrainerWasWriting) {
  const testing::TempDir place;
  const RunConfig config = scripted_run();
  RunFolder(place.path(), config).begin({});
  std::filesystem::create_directories(place.file("checkpoints"));
  const std::vector<std::string> left = {place.file(".config.toml.77-0.tmp"),
                                         place.file("checkpoints/.00000004.safetensors.77-3.tmp")};
  for (const std::string& file : left) testing::spill(file, "half");
  testing::spill(place.file("notes.tmp"), "the user's own");
  RunFolder(place.path(), config).begin({});
  for (const std::string& file : left) EXPECT_FALSE(std::filesystem::exists(file)) << file;
  EXPECT_TRUE(std::filesystem::exists(place.file("notes.tmp")));
}

}  // namespace
}  // namespace rondo::test
