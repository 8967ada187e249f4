// Training runs that meet damage: unusable checkpoints, moved folders, losses that are not finite,
// full disks. Nothing of a run is ever discarded.
#include <fcntl.h>
#include <stdio.h>

#include <set>

#include "rondo/config/train_config_continue.h"
#include "tests/cli/training.h"
#include "tests/faults/preload.h"
#include "tests/support/event_file.h"

namespace rondo::testing {
namespace {

// Every file of a run except the lock, with its bytes.
std::map<std::string, std::string> contents_of(const std::string& run) {
  std::map<std::string, std::string> files;
  using Options = std::filesystem::directory_options;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           run, Options::skip_permission_denied)) {  // of folders, if not run by root
    std::error_code loop;
    if (entry.is_regular_file(loop)) files[entry.path()] = slurp(entry.path());
  }
  files.erase(run + "/lock");
  return files;
}

// The same command is rejected with `code` and all of `parts`, and changes nothing; also with a
// changed key, which must not reach config.toml.
void expect_run_untouched(const Trainee& t, ExitCode code, const std::vector<std::string>& parts,
                          const std::function<Result(const Arguments&)>& run = rondo) {
  const auto before = contents_of(t.file("run"));
  ASSERT_GE(before.size(), 3u);
  for (const char* steps : {"train.steps=6", "train.steps=8"}) {
    const Result result = run(t.command("run", {"--set", steps}));
    for (const std::string& part : parts) expect_refusal(result, code, part);
    EXPECT_TRUE(contents_of(t.file("run")) == before) << result.err;
  }
}

// A run of six steps with the checkpoints of steps 4 and 6.
void short_run(const Trainee& t) { t.train("run", {"--set", "train.steps=6"}); }

int64_t lines_with(const std::string& text, const std::string& part) {
  const std::vector<std::string> lines = lines_of(text);
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return contains(line, part); });
}

// ---- checkpoints ------------------------------------------------------------------------------

TEST(UnusableCheckpoints, AllDamagedEndTheCommandAndNothingIsTouched) {
  const Trainee t;
  short_run(t);
  const std::vector<std::string> files = t.checkpoints("run");
  ASSERT_EQ(files.size(), 2u);
  const std::string whole = slurp(files[0]);
  std::string flipped = whole;
  flipped[flipped.size() - 9] = static_cast<char>(flipped[flipped.size() - 9] ^ 1);
  spill(files[0], flipped);
  spill(files[1], slurp(files[1]).substr(0, 1000));
  expect_run_untouched(t, ExitCode::bad_input,
                       {"no checkpoint is intact", files[0] + ": checksum mismatch",
                        files[1] + ": expected", "nothing was changed"});
  // After it is restored, the run continues.
  spill(files[0], whole);
  t.train("run");
  t.train("whole");
  expect_same_run(t, "run", "whole");
}

TEST(UnusableCheckpoints, ThatCannotBeReadAreNoDamage) {
  const Trainee t;
  short_run(t);
  const std::string newest = t.checkpoints("run").back();
  const std::string whole = slurp(newest);
  std::filesystem::remove(newest);
  std::filesystem::create_symlink(newest, newest);  // unreadable, even for root
  expect_run_untouched(t, ExitCode::io, {"cannot read a checkpoint", newest + ": cannot open"});
  std::filesystem::remove(newest);
  spill(newest, whole);
  EXPECT_TRUE(contains(t.train("run").err, "continuing from step 6"));
}

// Runs the command without root's permission to read everything.
Result without_privileges(const Arguments& arguments) {
  if (geteuid() != 0) return rondo(arguments);
  Arguments words = {"--bounding-set", "-dac_override,-dac_read_search", RONDO_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program("/usr/bin/setpriv", words);
}

TEST(UnusableCheckpoints, ThatMayNotBeReadAreNamedEach) {
  const Trainee t;
  short_run(t);
  const std::vector<std::string> files = t.checkpoints("run");
  ASSERT_EQ(files.size(), 2u);
  using std::filesystem::perms;
  for (const std::string& file : files) std::filesystem::permissions(file, perms::none);
  const std::string denied = ": cannot open for reading: Permission denied";
  expect_run_untouched(t, ExitCode::io,
                       {"cannot read a checkpoint; nothing was changed", files[0] + denied,
                        files[1] + denied, "make the files readable"},
                       without_privileges);
  std::filesystem::permissions(t.file("run/checkpoints"), perms::none);
  expect_run_untouched(t, ExitCode::io,
                       {t.file("run/checkpoints") + ": cannot read the folder: Permission denied"},
                       without_privileges);
  std::filesystem::permissions(t.file("run/checkpoints"), perms::owner_all);
  for (const std::string& file : files) std::filesystem::permissions(file, perms::owner_all);
  EXPECT_TRUE(contains(t.train("run").err, "continuing from step 6"));
}

TEST(UnusableCheckpoints, ThatCannotBeMappedAreNoDamage) {
  const Trainee t;
  short_run(t);
  const std::string newest = t.checkpoints("run").back();
  const auto without_memory = [&](const Arguments& words) {
    return rondo_with_fault("no_memory", newest, words);
  };
  expect_run_untouched(t, ExitCode::io,
                       {"cannot read a checkpoint; nothing was changed",
                        newest + ": cannot map into memory: Cannot allocate memory"},
                       without_memory);
  EXPECT_TRUE(contains(t.train("run").err, "continuing from step 6"));
}

TEST(UnusableCheckpoints, OfAFolderThatCannotBeReadAreNoFreshRun) {
  const Trainee t;
  short_run(t);
  const std::string folder = t.file("run/checkpoints");
  std::filesystem::rename(folder, t.file("elsewhere"));
  std::filesystem::create_symlink(t.file("not mounted"), folder);
  expect_run_untouched(t, ExitCode::io, {folder + ": cannot read the folder"});
  std::filesystem::remove(folder);
  std::filesystem::create_symlink(t.file("elsewhere"), folder);
  EXPECT_TRUE(contains(t.train("run").err, "continuing from step 6"));
}

TEST(UnusableCheckpoints, OneIsPassedOverInOneLine) {
  const Trainee t;
  short_run(t);
  const std::string newest = t.checkpoints("run").back();
  spill(newest, "nothing of the sort");
  const Result result = t.train("run");
  EXPECT_EQ(lines_with(result.err, newest), 1) << result.err;
  EXPECT_TRUE(contains(result.err, "skipped in favor of the checkpoint of step 4")) << result.err;
  EXPECT_TRUE(contains(result.err, "continuing from step 4")) << result.err;
  t.train("whole");
  expect_same_run(t, "run", "whole");
}

// ---- folders ----------------------------------------------------------------------------------

TEST(RunFolderMoved, TheRunSavesThereAndStops) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 3)) << child.err();
  std::filesystem::rename(t.file("run"), t.file("moved"));
  EXPECT_EQ(child.wait(), static_cast<int>(ExitCode::io)) << child.err();
  const std::string said = child.err();
  EXPECT_TRUE(contains(said, t.file("run") + ": the run folder was moved to " + t.file("moved")))
      << said;
  EXPECT_TRUE(contains(said, "-o " + t.file("moved"))) << said;
  EXPECT_FALSE(std::filesystem::exists(t.file("run")));
  // Nothing is lost.
  const int64_t step = steps_done(t, "moved");
  ASSERT_EQ(t.checkpoints("moved").size(), 1u);
  EXPECT_EQ(step_of(t.checkpoints("moved").back()), step);
  const std::string more = "train.steps=" + std::to_string(step + 2);
  EXPECT_TRUE(contains(t.train("moved", {"--set", more}).err,
                       "continuing from step " + std::to_string(step)));
  t.train("whole", {"--set", more});
  expect_same_run(t, "moved", "whole");
}

TEST(RunFolderMoved, AnotherOfTheSameNameIsNotWrittenTo) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 3)) << child.err();
  // In one step: the old name always refers to something.
  std::filesystem::create_directories(t.file("other"));
  ASSERT_EQ(renameat2(AT_FDCWD, t.file("run").c_str(), AT_FDCWD, t.file("other").c_str(),
                      RENAME_EXCHANGE),
            0);
  EXPECT_EQ(child.wait(), static_cast<int>(ExitCode::io)) << child.err();
  EXPECT_TRUE(std::filesystem::is_empty(t.file("run")));
  EXPECT_EQ(t.checkpoints("other").size(), 1u);
}

TEST(RunFolderRemoved, TheRunStopsAndMakesNoOther) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 3)) << child.err();
  // Immediately, as far as the name is concerned.
  std::filesystem::rename(t.file("run"), t.file("gone"));
  std::error_code ignored;
  while (std::filesystem::exists(t.file("gone"))) {
    std::filesystem::remove_all(t.file("gone"), ignored);
  }
  EXPECT_EQ(child.wait(), static_cast<int>(ExitCode::io)) << child.err();
  EXPECT_FALSE(std::filesystem::exists(t.file("run")));
}

TEST(ASecondTrainer, IsTurnedAwayThoughTheLockFileIsDeleted) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 2)) << child.err();
  ASSERT_TRUE(std::filesystem::remove(t.file("run/lock")));
  expect_refusal(rondo(t.command("run", {"--set", "train.steps=2"})), ExitCode::busy,
                 t.file("run") + ": another trainer is using this folder");
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143);
}

// ---- messages and records -----------------------------------------------------------------------

TEST(ChangedThreads, AreSaid) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=4"});
  const Result same = t.train("run", {"--set", "train.steps=6"});
  EXPECT_FALSE(contains(same.err, "threads")) << same.err;
  const Result other = t.train("run", {"--set", "train.threads=2"});
  EXPECT_TRUE(contains(other.err, "continuing with 2 threads where the run had 1")) << other.err;
  EXPECT_TRUE(contains(other.err, "may not be bitwise equal")) << other.err;
  EXPECT_TRUE(contains(slurp(t.file("run/changes.jsonl")), R"("key":"threads","now":"2")"));
}

TEST(KilledRuns, ShowEachStepOnceInTensorBoard) {
  const Trainee t;
  const Arguments more = {"--set", "train.save_every=7"};
  for (const int64_t steps : {9, 24, 39}) {
    Child child(t.command("run", more));
    ASSERT_TRUE(wait_for_steps(t, "run", steps)) << child.err();
    child.send(SIGKILL);
    child.wait();
  }
  t.train("run", more);
  ASSERT_EQ(event_files(t.file("run")).size(), 4u);
  std::vector<int64_t> steps;
  for (const ReadEvent& event : shown_events(t.file("run"))) steps.push_back(event.step);
  std::vector<int64_t> expected;
  for (int64_t step = 1; step <= 60; ++step) expected.push_back(step);
  EXPECT_EQ(steps, expected);
}

// Every key that a language model on a CPU has and that may be changed: the run goes on, and its
// folder says what was changed.
TEST(ChangedKeys, AllThatMayChangeAreNoted) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=2"});
  std::filesystem::copy(t.file("texts"), t.file("moved"));
  const std::map<std::string, std::string> changes = {
      {"train.steps", "5"},
      {"train.log_every", "2"},
      {"train.eval_every", "3"},
      {"train.eval_tokens", "100"},
      {"train.save_every", "3"},
      {"train.keep", "1"},
      {"train.patience", "9"},
      {"train.probe_every", "1"},
      {"data.train", t.file("moved")},
      {"data.valid", t.file("valid.txt")},
      {"data.test", t.file("valid.txt")},
      {"train.start", t.file("nowhere")},
      {"train.threads", "2"},
      {"train.precision", "bf16"},
      {"train.recompute_levels", "1"},
      {"train.reduce_precision", "bf16"},
      {"train.shard_optimizer", "true"},
      {"train.clip", "0.5"},
      {"train.accumulate", "2"},
      {"train.label_smoothing", "0.1"},
      {"optimizer.beta2", "0.99"},
      {"optimizer.epsilon", "1e-06"},
      {"optimizer.weight_decay", "0.2"},
      {"schedule.kind", "cosine"},
      {"schedule.rate", "0.01"},
      {"schedule.final_rate", "0.001"},
      {"schedule.warmup", "1"},
  };
  const std::set<std::string> others = {"train.device", "distill.teacher", "data.threads"};
  Arguments more;
  for (const std::string& key : changeable_keys()) {
    if (others.count(key) != 0) continue;
    ASSERT_EQ(changes.count(key), 1u) << key;
    more.insert(more.end(), {"--set", key + "=" + changes.at(key)});
  }
  EXPECT_EQ(more.size(), 2 * changes.size());
  const Result result = t.train("run", more);
  EXPECT_TRUE(contains(result.err, "continuing from step 2")) << result.err;
  std::map<std::string, std::string> noted;
  for (const std::string& line : lines_of(slurp(t.file("run/changes.jsonl")))) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("step"), 2);
    noted[json.at("key")] = json.at("now");
  }
  EXPECT_EQ(noted.erase("threads"), 1u);
  for (const auto& [key, value] : changes) {
    EXPECT_TRUE(noted[key] == value || noted[key] == "\"" + value + "\"") << key << noted[key];
  }
  EXPECT_EQ(noted.size(), changes.size());
  EXPECT_EQ(step_of(t.checkpoints("run").back()), 5);
}

// Its weights are in its checkpoint.
TEST(FineTunedRuns, NeedTheirStartNoMore) {
  const Trainee t;
  t.train("first", {"--set", "train.steps=2"});
  const std::string start = "train.start=" + t.file("first");
  t.train("run", {"--set", start, "--set", "train.steps=2"});
  t.train("whole", {"--set", start, "--set", "train.steps=4"});
  t.remove("first");
  expect_refusal(rondo(t.command("other", {"--set", start})), ExitCode::bad_input,
                 t.file("first") + ": no such run folder or model file");
  t.train("run", {"--set", start, "--set", "train.steps=4"});
  expect_same_run(t, "run", "whole");
}

// ---- divergence -------------------------------------------------------------------------------

TEST(DivergedTraining, GoesOnAsItsAdviceSays) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=4"});
  // Weights that had no gradient are 0 / 0 then.
  const Arguments bad = {"--set", "optimizer.epsilon=0", "--set", "train.ema=0.9"};
  const Result diverged = rondo(t.command("run", bad));
  EXPECT_EQ(diverged.code, static_cast<int>(ExitCode::diverged)) << diverged.err;
  EXPECT_TRUE(contains(diverged.err, "optimizer.epsilon: 1e-08 until step 4, 0.0 from here on"))
      << diverged.err;
  EXPECT_TRUE(contains(diverged.err, "the checkpoint of step 4 is good")) << diverged.err;
  EXPECT_TRUE(contains(diverged.err, "--set schedule.rate=0.01 (now 0.02)")) << diverged.err;
  ASSERT_EQ(t.checkpoints("run").size(), 2u);
  for (const std::string& file : t.checkpoints("run")) {
    for (const auto& [name, array] : below(read_arrays(file), "weight.")) {
      for (const double value : array.numbers()) ASSERT_TRUE(std::isfinite(value)) << name;
    }
  }
  const Result again = t.train("run", {"--set", "schedule.rate=0.01"});
  EXPECT_TRUE(contains(again.err, "schedule.rate: 0.02 until step 4, 0.01 from here on"))
      << again.err;
  EXPECT_EQ(t.metrics("run").back().at("rate"), 0.01);
  const std::string noted = slurp(t.file("run/changes.jsonl"));
  EXPECT_TRUE(contains(noted, R"("key":"schedule.rate","now":"0.01","step":4)")) << noted;
}

// ---- full disks -------------------------------------------------------------------------------

// Without a trap: the shell leaves SIGXFSZ at its default, which kills.
TEST(FileSizeLimit, IsAWriteErrorAndNoSignal) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=4"});
  const std::string last = t.checkpoints("run").back();
  const std::string before = slurp(last);
  const Result result = in_shell("ulimit -f 16; exec " + quoted(t.command("run")));
  EXPECT_EQ(result.code, static_cast<int>(ExitCode::io)) << result.err;
  EXPECT_TRUE(contains(result.err, "00000006.safetensors: cannot write: File too large"))
      << result.err;
  EXPECT_EQ(slurp(last), before);
  t.train("run");
}

TEST(MetricsWithoutRoom, AreSaidOnceAndTheRunGoesOn) {
  const Trainee t;
  Child child(t.command("run", kEndless));
  ASSERT_TRUE(wait_for_steps(t, "run", 3)) << child.err();
  std::filesystem::create_symlink("/dev/full", t.file("full"));
  std::filesystem::rename(t.file("full"), t.file("run/metrics.jsonl"));
  wait_until([&] { return child.ended() || contains(child.err(), "cannot write"); }, "a warning");
  pause_for(0.3);
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 143) << child.err();
  EXPECT_EQ(lines_with(child.err(), "metrics.jsonl: cannot write: No space left"), 1)
      << child.err();
  EXPECT_EQ(t.checkpoints("run").size(), 1u);
}

}  // namespace
}  // namespace rondo::testing
