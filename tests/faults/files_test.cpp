// Broken model and state files: damaged, of the wrong shape, with values that are not finite. Every
// verb that reads one ends with exit code 3 and names the file and the tensor.
#include "tests/cli/authors.h"
#include "tests/cli/tampering.h"
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// One small language model for all cases, and the state after a text.
class FileFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    trainee_ = new Trainee;
    trainee_->train("run", {"--set", "train.steps=10"});
    spill(file("begun.txt"), "round and round");
    rondo_ok({"state", "read", file("run"), file("begun.txt"), "-o", file("good")});
  }
  static void TearDownTestSuite() {
    delete trainee_;
    trainee_ = nullptr;
  }
  static std::string file(const std::string& name) { return trainee_->file(name); }
  static std::string model() { return file("run/best.safetensors"); }

  static Result generate(const Arguments& more) {
    Arguments words = {"generate", file("run"), "-n", "20"};
    words.insert(words.end(), more.begin(), more.end());
    return rondo(words);
  }
  static Result serve(const std::string& served) {
    return run_program("/usr/bin/timeout",
                       {"20", RONDO_BINARY, "serve", served, "--listen", "unix:" + file("socket")});
  }
  static void expect_bad(const Result& result, const std::string& path, const std::string& part) {
    expect_refusal(result, ExitCode::bad_input, path + ": ");
    EXPECT_TRUE(contains(result.err, part)) << part << "\n" << result.err;
  }
  static Trainee* trainee_;
};
Trainee* FileFaults::trainee_ = nullptr;

// ---- states -------------------------------------------------------------------------------------

struct Forgery {
  const char* tensor;
  std::function<void(Array&)> change;
};

std::vector<Forgery> forgeries() {
  const auto resize = [](const std::vector<int64_t>& shape) {
    return [shape](Array& a) { a = ramp(shape, 1.0); };
  };
  return {
      {"logits", resize({1, 4096})},  // sampled tokens past the embedding
      {"logits", resize({1, 3})},     // fewer than there are tokens
      {"logits", resize({})},
      {"logits", [](Array& a) { spoil(a); }},
      {"recent",
       [](Array& a) {
         a = whole({1, 2}, {3, 1 << 20});
       }},
      {"recent",
       [](Array& a) {
         a = whole({1, 2}, {3, -1});
       }},
      {"recent",
       [](Array& a) {
         a = whole({1, 5000}, std::vector<int64_t>(5000, 1));
       }},
      {"position", [](Array& a) { a = whole({1}, {-3}); }},
      {"position", [](Array& a) { a = whole({1}, {int64_t{1} << 62}); }},
      {"position", [](Array& a) { a = whole({1}, {8}); }},  // the keys belong to another position
      {"position", [](Array& a) { a = whole({}, {15}); }},
      {"position", [](Array& a) { a = whole({0}, {}); }},
      {"position", [](Array& a) { a = floats({1}, {15.0F}); }},
      {"fresh", [](Array& a) { a = floats({1}, {0.0F}); }},
      {"fresh", [](Array& a) { a.bytes = {7}; }},
      {"level.0.keys", resize({1, 2, 2, 8})},
      {"level.0.keys", resize({1, 64, 2, 8})},
      {"level.0.values", resize({2, 8, 2, 8})},
      {"level.1.values", [](Array& a) { a.dtype = DType::i32; }},
      {"level.1.keys", [](Array& a) { spoil(a, std::numeric_limits<float>::infinity()); }},
      {"level.1.state", resize({1, 4, 17})},
      {"level.1.state", [](Array& a) { a.dtype = DType::f16, a.shape.push_back(2); }},
  };
}

TEST_F(FileFaults, ForgedStatesAreRefused) {
  const std::string forged = file("forged");
  for (const Forgery& f : forgeries()) {
    SCOPED_TRACE(f.tensor);
    tamper(file("good"), forged, [&](Arrays& a) { f.change(a.at(f.tensor)); });
    // A position may be right but the keys those of another: then the message names the keys.
    const bool named = std::string(f.tensor) != "position";
    expect_bad(generate({"--state-in", forged}), forged, named ? f.tensor : "expected");
  }
  tamper(file("good"), forged, [](Arrays& a) { a.erase("level.1.state"); });
  expect_bad(generate({"--state-in", forged}), forged, "missing: level.1.state F32 [1, 4, 16]");
  tamper(file("good"), forged, [](Arrays& a) { a["more"] = whole({1}, {1}); });
  expect_bad(generate({"--state-in", forged}), forged, "unknown: more I64 [1]");
}

TEST_F(FileFaults, EveryVerbThatContinuesAStateChecksIt) {
  const std::string forged = file("forged");
  tamper(file("good"), forged, [](Arrays& a) { a["logits"] = ramp({1, 4096}); });
  const std::string part = "logits: expected F32 [1, 260], got F32 [1, 4096]";
  expect_bad(rondo({"state", "read", file("run"), file("begun.txt"), "--state-in", forged, "-o",
                    file("x")}),
             forged, part);
  expect_bad(rondo({"eval", file("run"), "--data", file("valid.txt"), "--cache", file("cache"),
                    "--state-in", forged}),
             forged, part);
  EXPECT_FALSE(std::filesystem::exists(file("x")));

  write_arrays(file("tokens"), {{"tokens", whole({2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}});
  const auto forward = [&](const Arguments& more) {
    Arguments words = {"forward",  model(),     "--input",     file("tokens"),
                       "--output", file("out"), "--state-out", file("two")};
    words.insert(words.end(), more.begin(), more.end());
    return rondo(words);
  };
  ASSERT_EQ(forward({}).code, 0);
  ASSERT_EQ(forward({"--state-in", file("two")}).code, 0);
  tamper(file("two"), forged, [](Arrays& a) { a["position"] = whole({2}, {10, 11}); });
  expect_bad(forward({"--state-in", forged}), forged, "tensor 'position'");
  tamper(file("two"), forged, [](Arrays& a) { a["level.0.keys"] = ramp({2, 9, 2, 8}); });
  expect_bad(forward({"--state-in", forged}), forged, "level.0.keys: expected F32 [2, 8, 2, 8]");
  tamper(file("two"), forged, [](Arrays& a) { spoil(a.at("level.1.state")); });
  expect_bad(forward({"--state-in", forged}), forged, "tensor 'level.1.state': expected finite");
}

TEST_F(FileFaults, StatesAreToldAndCopiedWithoutTheirModel) {
  const std::string forged = file("forged");
  for (const Array& position : {whole({}, {15}), whole({0}, {}), floats({1}, {1.5F})}) {
    tamper(file("good"), forged, [&](Arrays& a) { a["position"] = position; });
    expect_bad(rondo({"state", "info", forged}), forged, "position");
    expect_bad(rondo({"state", "fork", forged, "-o", file("x")}), forged, "position");
  }
  tamper(file("good"), forged, [&](Arrays& a) { a["a"] = whole({3}, {1, 2, 3}); });
  expect_bad(rondo({"state", "info", forged}), forged, "rows");
  flip_bit(file("good"), forged, 0.5, 3);
  expect_bad(rondo({"state", "info", forged}), forged, "checksum mismatch");
  expect_bad(rondo({"state", "fork", forged, "-o", file("x")}), forged, "checksum mismatch");
  EXPECT_FALSE(std::filesystem::exists(file("x")));
  rondo_ok({"state", "info", forged, "--no-verify"});
}

// ---- bit rot ------------------------------------------------------------------------------------

TEST_F(FileFaults, NoFlippedBitGoesUnnoticed) {
  for (const std::string& whole_file : {model(), file("good")}) {
    for (int i = 0; i < 200; ++i) {
      flip_bit(whole_file, file("rotten"), i / 200.0, i % 8);
      const Error error = error_of([&] { SafetensorsFile::open(file("rotten")).verify(); });
      EXPECT_TRUE(contains(error.message(), "checksum mismatch")) << i;
    }
  }
}

TEST_F(FileFaults, EveryVerbThatRunsAModelComparesChecksums) {
  const std::string rotten = file("rotten.safetensors");
  flip_bit(model(), rotten, 0.4, 2);  // a low bit of a mantissa: only the checksum can detect it
  write_arrays(file("tokens"), {{"tokens", whole({1, 3}, {1, 2, 3})}});
  const std::vector<Arguments> verbs = {
      {"generate", rotten, "-n", "5"},
      {"eval", rotten, "--data", file("valid.txt"), "--cache", file("cache")},
      {"state", "read", rotten, file("begun.txt"), "-o", file("x")},
      {"forward", rotten, "--input", file("tokens"), "--output", file("x")},
      {"average", rotten, rotten, "-o", file("x")},
      {"export", rotten, "-o", file("exported")},
      {"compare", rotten, rotten, "--data", file("valid.txt"), "--cache", file("cache")},
      {"study", "state", rotten, "--data", file("valid.txt"), "-o", file("state.html")},
  };
  for (Arguments words : verbs) {
    SCOPED_TRACE(words[0]);
    expect_bad(rondo(words), rotten, "checksum mismatch (expected xxh3:");
    words.push_back("--no-verify");
    rondo_ok(words);
  }
  // What would run for long otherwise.
  expect_bad(serve(rotten), rotten, "checksum mismatch");
  expect_bad(rondo(trainee_->command("tuned", {"--set", "train.start=" + rotten})), rotten,
             "checksum mismatch");
  flip_bit(file("good"), file("rotten"), 0.7, 2);
  expect_bad(generate({"--state-in", file("rotten")}), file("rotten"), "checksum mismatch");
  EXPECT_EQ(generate({"--state-in", file("rotten"), "--no-verify"}).code, 0);
}

// A checkpoint is a model too, by its name, as part of its run, and for an average.
TEST_F(FileFaults, CheckpointsUsedAsModelsAreCompared) {
  const std::string run = file("stopped");
  const std::string checkpoint = run + "/checkpoints/00000010.safetensors";
  std::filesystem::copy(file("run"), run, std::filesystem::copy_options::recursive);
  std::filesystem::remove(run + "/best.safetensors");
  const Arguments average = {"average", run, "--last", "1", "-o", file("mean")};
  rondo_ok({"generate", run, "-n", "5"});
  rondo_ok(average);
  flip_bit(checkpoint, checkpoint, 0.4, 2);
  for (Arguments words : {Arguments{"generate", checkpoint, "-n", "5"},
                          Arguments{"generate", run, "-n", "5"}, average}) {
    const Result result = rondo(words);
    EXPECT_EQ(result.code, static_cast<int>(ExitCode::bad_input));
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, "rondo: " + checkpoint + ": checksum mismatch")) << result.err;
    words.push_back("--no-verify");
    rondo_ok(words);
  }
}

TEST_F(FileFaults, FilesOfOtherProgramsNeedNoChecksum) {
  tamper(model(), file("plain.safetensors"), [](Arrays&) {});
  tamper(file("good"), file("plain"), [](Arrays&) {});
  EXPECT_EQ(SafetensorsFile::open(file("plain")).metadata().count(kFileChecksumKey), 0u);
  const Result result =
      rondo_ok({"generate", file("plain.safetensors"), "--state-in", file("plain"), "-n", "20"});
  EXPECT_EQ(result.out, generate({"--state-in", file("good")}).out);
}

// ---- values that are not finite
// ------------------------------------------------------------------

TEST_F(FileFaults, WeightsThatAreNotFiniteAreRefused) {
  const std::string spoilt = file("spoilt.safetensors");
  const std::string name = "stack.feed_forward.0.up.weight";
  ASSERT_EQ(read_arrays(model()).count(name), 1u);
  write_arrays(file("tokens"), {{"tokens", whole({1, 3}, {1, 2, 3})}});
  for (const float bad : {INFINITY, NAN}) {
    tamper(model(), spoilt, [&](Arrays& a) { spoil(a.at(name), bad); });
    for (const Arguments& words : std::vector<Arguments>{
             {"generate", spoilt, "--no-verify"},
             {"eval", spoilt, "--data", file("valid.txt"), "--cache", file("cache")},
             {"state", "read", spoilt, file("begun.txt"), "-o", file("x")},
             {"forward", spoilt, "--input", file("tokens"), "--output", file("x")},
             {"average", model(), spoilt, "-o", file("x")},
             {"export", spoilt, "-o", file("spoilt-model")},
             {"compare", spoilt, model(), "--data", file("valid.txt"), "--cache", file("cache")},
             {"study", "state", spoilt, "--data", file("valid.txt"), "-o", file("x")}}) {
      SCOPED_TRACE(words[0]);
      expect_bad(rondo(words), spoilt, "tensor '" + name + "': expected finite numbers, got ");
    }
    expect_bad(serve(spoilt), spoilt, "tensor '" + name + "': expected finite numbers, got ");
  }
  rondo_ok({"info", spoilt});  // a verb that runs no model
}

TEST(FileFaultsImport, WeightsThatAreNotFiniteAreRefused) {
  const Authors m("brt_slide", "meliad");
  Arrays theirs = m.weights();
  const std::string name = theirs.begin()->first;
  spoil(theirs.begin()->second);
  write_arrays(m.file("spoilt.safetensors"), theirs);
  const Result result = rondo({"import", "--from", "meliad", m.file("spoilt.safetensors"),
                               "--config", m.config(), "-o", m.file("x.safetensors")});
  expect_refusal(result, ExitCode::bad_input, name + " (for ");
  EXPECT_TRUE(contains(result.err, "expected finite numbers, got nan at element ")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(m.file("x.safetensors")));
}

// ---- which states can be continued
// ---------------------------------------------------------------

TEST_F(FileFaults, ARepetitionPenaltyContinuesAcrossFiles) {
  const Arguments how = {"--repetition-penalty", "4",   "--repetition-window", "12",
                         "--temperature",        "0.5", "--threads",           "1"};
  const auto text = [&](const Arguments& more) {
    Arguments words = {"generate", file("run")};
    words.insert(words.end(), how.begin(), how.end());
    words.insert(words.end(), more.begin(), more.end());
    return rondo_ok(words).out;
  };
  const std::string whole = text({"--prompt", "round and", "-n", "60"});
  std::string parts = text({"--prompt", "round and", "-n", "9", "--state-out", file("part")});
  for (const char* count : {"1", "30", "20"}) {
    parts += text({"--state-in", file("part"), "-n", count, "--state-out", file("part")});
  }
  EXPECT_EQ(parts, whole);
  // The same with a text that another verb read.
  spill(file("begin.txt"), "round and");
  rondo_ok({"state", "read", file("run"), file("begin.txt"), "-o", file("part"), "--threads", "1"});
  EXPECT_EQ(text({"--state-in", file("part"), "-n", "60"}), whole);
  rondo_ok({"eval", file("run"), "--data", file("begin.txt"), "--cache", file("cache"),
            "--state-out", file("part"), "--threads", "1"});
  EXPECT_EQ(text({"--state-in", file("part"), "-n", "60"}), whole);
  expect_refusal(generate({"--repetition-window", "4097"}), ExitCode::usage, "4096");
}

}  // namespace
}  // namespace rondo::testing
