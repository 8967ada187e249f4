// rondo train: what it writes to a run folder, what it prints, what it rejects.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// Like expect_refusal(), but log lines may precede the message.
void expect_refusal_after_log(const Result& result, ExitCode code, const std::string& part) {
  EXPECT_EQ(result.code, static_cast<int>(code)) << result.err;
  EXPECT_EQ(result.out, "");
  const size_t at = result.err.rfind("\nrondo: ");
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_TRUE(contains(result.err.substr(at), part)) << result.err;
  EXPECT_FALSE(contains(result.err, "internal error")) << result.err;
}

TEST(TrainVerb, LeavesARunFolderAndPrintsItsPath) {
  const Trainee t;
  const Result result = t.train(
      "run", {"--set", "data.valid=" + t.file("valid.txt"), "--set", "train.eval_every=20"});
  EXPECT_EQ(result.out, t.file("run") + "\n");
  EXPECT_TRUE(contains(result.err, "step 20: valid_bits_per_byte ")) << result.err;
  for (const char* name : {"config.toml", "metrics.jsonl", "best.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(t.file("run/" + std::string(name)))) << name;
  }
  ASSERT_EQ(t.checkpoints("run").size(), 2u);
  EXPECT_EQ(t.checkpoints("run").back(), t.file("run/checkpoints/00000060.safetensors"));
  const auto lines = t.metrics("run");
  ASSERT_EQ(lines.size(), 63u);  // 60 steps, 3 evaluations
  for (const char* key : {"loss", "gradient_norm", "rate", "skipped", "seconds"}) {
    EXPECT_TRUE(lines.front().contains(key)) << key;
  }
  EXPECT_LT(lines[61].at("loss"), 0.8 * lines[0].at("loss").get<double>()) << "it learns";
  int events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(t.file("run"))) {
    events += contains(entry.path().filename(), "events.out.tfevents.") ? 1 : 0;
  }
  EXPECT_EQ(events, 1);
  // The folder's own configuration, used as an experiment, gives the same weights.
  const Result again = rondo_ok(
      {"train", t.file("run/config.toml"), "-o", t.file("again"), "--cache", t.file("cache")});
  expect_same_run(t, "run", "again");
}

// The program and the engine share one log.
TEST(TrainVerb, VerboseShowsTheEnginesDebugLines) {
  const Trainee t;
  const Arguments one_step = {"--set", "train.steps=1"};
  t.train("first", one_step);
  const std::string line = "debug: documents: using " + t.file("cache");
  EXPECT_FALSE(contains(t.train("second", one_step).err, line));
  Arguments words = t.command("third", one_step);
  words.insert(words.begin(), "-v");
  const Result verbose = rondo_ok(words);
  EXPECT_TRUE(contains(verbose.err, line)) << verbose.err;
}

TEST(TrainVerb, LogsTheStateProbe) {
  const Trainee t;
  t.train("run", {"--set", "train.probe_every=25", "--set", "train.log_every=1000"});
  const auto lines = t.metrics("run");
  ASSERT_EQ(lines.size(), 3u);  // steps 1, 25 and 50
  for (const char* key : {"state_use", "gate_mean", "state_1_norm", "state_1_rank"}) {
    EXPECT_TRUE(lines[2].contains(key)) << lines[2];
  }
}

TEST(TrainVerb, NamesTheFolderAfterTheExperiment) {
  const Trainee t;
  const Arguments words = {"train",         t.config(),     "--cache",
                           t.file("cache"), "--set",        "data.train=" + t.file("texts"),
                           "--set",         "train.steps=2"};
  const Result result = in_shell("cd '" + t.file("") + "' && " + quoted(words));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "runs/tiny\n");
  EXPECT_EQ(t.checkpoints("runs/tiny").size(), 1u);
}

TEST(TrainVerb, DryRunSaysWhatItWouldTakeAndMakesNoFolder) {
  const Trainee t;
  const Result result = t.train("run", {"--dry-run"});
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 5u) << result.out;
  const Result info = rondo_ok({"info", t.config(), "--json"});
  EXPECT_EQ(lines[0].rfind("parameters        ", 0), 0u);
  std::string parameters = lines[0].substr(18);
  parameters.erase(std::remove(parameters.begin(), parameters.end(), ','), parameters.end());
  EXPECT_EQ(std::stoll(parameters), info.json().at("parameters").get<int64_t>());
  EXPECT_EQ(lines[1], "steps             60, 32 tokens each");
  EXPECT_EQ(lines[2].rfind("peak memory       ", 0), 0u) << lines[2];
  EXPECT_EQ(lines[3].rfind("time per step     ", 0), 0u) << lines[3];
  EXPECT_EQ(lines[4].rfind("total time        ", 0), 0u) << lines[4];
  EXPECT_FALSE(std::filesystem::exists(t.file("run")));
}

TEST(TrainVerb, RefusesAnotherExperimentInTheSameFolder) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=2"});
  expect_refusal(rondo(t.command("run", {"--set", "model.width=24"})), ExitCode::bad_input,
                 "the folder contains another experiment: expected width = 16, got width = 24");
  t.train("run", {"--set", "train.steps=3"});
}

// A first attempt that fails because of its data must not prevent the second.
TEST(TrainVerb, WithoutDataLeavesNothingBehind) {
  const Trainee t;
  expect_refusal(rondo({"train", t.config(), "-o", t.file("run")}), ExitCode::bad_input,
                 "data.train: missing");
  expect_refusal(rondo(t.command("run", {"--set", "data.train=" + t.file("nowhere")})),
                 ExitCode::io, t.file("nowhere"));
  std::filesystem::create_directories(t.file("empty"));
  expect_refusal_after_log(rondo(t.command("run", {"--set", "data.train=" + t.file("empty")})),
                           ExitCode::bad_input, t.file("empty") + ": no text");
  EXPECT_FALSE(std::filesystem::exists(t.file("run")));
  t.train("run", {"--set", "train.steps=2"});
}

// Debian's libtorch has no CUDA; with one that has, the test machines still have no GPU.
TEST(TrainVerb, RefusesADeviceThatIsNotThere) {
  const Trainee t;
  expect_refusal(rondo(t.command("run", {"--set", "train.device=cuda"})), ExitCode::bad_input,
                 "train.device: cuda: this libtorch has no CUDA");
  EXPECT_FALSE(exists(t.file("run")));
}

TEST(TrainVerb, SaysWhereAConfigurationIsWrong) {
  const Trainee t;
  const std::string good = slurp(t.config());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    spill(t.config(), text);
    return rondo(t.command("run"));
  };
  const auto line_of = [&](const std::string& part) {
    const auto lines =
        std::count(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.find(part)), '\n');
    return t.config() + ":" + std::to_string(lines + 1);
  };
  expect_refusal(with("steps = 60", "stepps = 60"), ExitCode::bad_input, line_of("steps = 60"));
  expect_refusal(with("steps = 60", "stepps = 60"), ExitCode::bad_input, "train.stepps");
  expect_refusal(with("[schedule]", "[shedule]"), ExitCode::bad_input, line_of("[schedule]"));
  expect_refusal(with("batch = 2", "batch = 0"), ExitCode::bad_input, line_of("batch = 2"));
  expect_refusal(with("segment = 16", "segment = 15"), ExitCode::bad_input,
                 "expected a multiple of the window 8, got 15");
  expect_refusal(with("kind = \"language-model\"", "kind = \"vision\""), ExitCode::bad_input,
                 t.config());
  spill(t.config(), good);
  expect_refusal(rondo(t.command("run", {"--set", "train.precision=fp8"})), ExitCode::bad_input,
                 "train.precision");
  expect_refusal(rondo({"train", t.file("nowhere.toml")}), ExitCode::io, "nowhere.toml");
  EXPECT_FALSE(std::filesystem::exists(t.file("run")));
}

TEST(TrainVerb, EndsWithFiveWhenItDiverges) {
  const Trainee t("adamw");
  // Weights that had no gradient are 0 / 0 then.
  const Result result = rondo(t.command("run", {"--set", "optimizer.epsilon=0"}));
  expect_refusal_after_log(result, ExitCode::diverged,
                           "training diverged: 5 losses in a row were not finite");
}

// A limit of some kilobytes on the size of files: like a full disk, with another error.
TEST(TrainVerb, KeepsTheLastCheckpointWhenTheDiskIsFull) {
  const Trainee t;
  t.train("run", {"--set", "train.steps=4"});
  const std::string last = t.checkpoints("run").back();
  const std::string before = slurp(last);
  const Result result = in_shell("trap '' XFSZ; ulimit -f 16; exec " + quoted(t.command("run")) +
                                 " --set train.keep=1");
  expect_refusal_after_log(result, ExitCode::io, t.file("run/checkpoints/00000006.safetensors"));
  EXPECT_TRUE(contains(result.err, "bytes; earlier ones are untouched")) << result.err;
  EXPECT_EQ(slurp(last), before);
  ASSERT_EQ(t.checkpoints("run").back(), last);
  t.train("run");
  t.train("whole");
  expect_same_run(t, "run", "whole");
}

}  // namespace
}  // namespace rondo::testing
