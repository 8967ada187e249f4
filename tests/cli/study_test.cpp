// rondo study and rondo report from the command line: pages, pictures, numbers, and what they
// reject.
#include "tests/cli/pictures.h"
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPairExperiment = R"([model]
kind = "encoder-decoder"
source_vocabulary = 260
target_vocabulary = 260
padding = 256
width = 16
hidden = 24
heads = 2

[model.depth]
scheme = "ring"
levels = 2

[data]
tokenizer = "bytes"
batch_tokens = 256

[train]
steps = 4
threads = 1
log_every = 1
probe_every = 2

[schedule]
kind = "constant"
rate = 0.01
)";

// One run per task, trained for long enough to be studied.
class Studies : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    texts = new Trainee();
    texts->train("lm", {"--set", "train.steps=6", "--set", "train.probe_every=2"});
    images = new Pictures();
    rondo_ok(images->command(
        "sret",
        {"--set", "train.steps=4", "--set", "train.probe_every=2", "--set",
         "model.depth.scheme=recursive", "--set", "model.depth.recursive.blocks=[2]", "--set",
         "model.depth.recursive.loops=[2]", "--set", "model.depth.recursive.residual=both"}));
    std::string source;
    for (int i = 0; i < 40; ++i) source += "ein Rad dreht sich " + std::to_string(i) + "\n";
    for (const char* side : {"de", "en"}) spill(file(std::string("pairs.") + side), source);
    spill(file("pairs.toml"), kPairExperiment);
    train_pairs("ring", {});
  }
  static void TearDownTestSuite() {
    delete texts;
    delete images;
  }
  static void train_pairs(const std::string& run, const Arguments& more) {
    Arguments words = {"train",   file("pairs.toml"),
                       "-o",      file(run),
                       "--cache", file("cache"),
                       "--set",   "data.train=" + file("pairs"),
                       "--set",   "data.source=de",
                       "--set",   "data.target=en",
                       "--set",   "data.test=" + file("pairs")};
    words.insert(words.end(), more.begin(), more.end());
    rondo_ok(words);
  }
  static std::string file(const std::string& name) { return texts->file(name); }
  static std::string lm() { return texts->file("lm"); }
  static std::string ring() { return file("ring"); }
  static std::string sret() { return images->file("sret"); }

  static Result study(const std::string& kind, const std::string& run, const Arguments& more = {}) {
    Arguments words = {"study", kind, run};
    if (kind != "coefficients" && kind != "cost") {
      words.insert(words.end(), {"--cache", file("cache")});
    }
    words.insert(words.end(), more.begin(), more.end());
    return rondo(words);
  }
  // The page of a study that succeeds; it must be self-contained.
  static std::string page(const std::string& kind, const std::string& run,
                          const Arguments& more = {}) {
    Arguments words = more;
    const std::string path = file(kind + ".html");
    fs::remove(path);
    words.insert(words.end(), {"-o", path});
    const Result result = study(kind, run, words);
    EXPECT_EQ(result.code, 0) << result.err;
    const std::string html = slurp(path);
    EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0U) << kind;
    EXPECT_NE(html.find("<svg "), std::string::npos) << kind;
    for (const char* bad : {"<script", "http", ">nan<", ">inf<"}) {
      EXPECT_EQ(html.find(bad), std::string::npos) << kind << ": " << bad;
    }
    return html;
  }
  static nlohmann::json numbers(const std::string& kind, const std::string& run,
                                const Arguments& more = {}) {
    Arguments words = more;
    words.emplace_back("--json");
    const Result result = study(kind, run, words);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  static Trainee* texts;
  static Pictures* images;
};
Trainee* Studies::texts = nullptr;
Pictures* Studies::images = nullptr;

// Like expect_refusal(), but a progress line may precede the message.
void expect_late_refusal(const Result& result, ExitCode code, const std::string& part) {
  EXPECT_EQ(result.code, static_cast<int>(code)) << result.err;
  EXPECT_EQ(result.out, "");
  const size_t message = result.err.find("rondo: ");
  ASSERT_NE(message, std::string::npos) << result.err;
  EXPECT_NE(result.err.find(part, message), std::string::npos) << result.err;
}

TEST_F(Studies, EveryKindMakesAPage) {
  const Arguments valid = {"--data", file("valid.txt")};
  page("cka", ring());
  page("cka", lm(), valid);
  page("cka", sret());
  page("attention-distance", ring());
  page("attention-distance", lm(), valid);
  page("attention-distance", sret());
  page("state", lm(), valid);
  page("signals", ring());
  page("activations", ring());
  page("activations", sret());
  page("coefficients", sret());
  page("coefficients", ring());
  page("cost", sret());
}

TEST_F(Studies, OfANetworkWithItselfIsOneOnTheDiagonal) {
  for (const char* estimator : {"tokens", "items", "rows", "rows-unbiased"}) {
    const auto json = numbers("cka", ring(), {"--estimator", estimator});
    EXPECT_EQ(json["estimator"], estimator);
    for (const auto& group : json["pairs"][0]["groups"]) {
      EXPECT_NEAR(group["diagonal_mean"].get<double>(), 1.0, 1e-6);
      EXPECT_EQ(group["cka"].size(), 2U);
    }
  }
}

TEST_F(Studies, StateAgreesWithEval) {
  const auto json = numbers("state", lm(), {"--data", file("valid.txt")})["runs"][0];
  const Arguments eval = {"eval",    lm(),          "--data", file("valid.txt"),
                          "--cache", file("cache"), "--json"};
  Arguments without = eval;
  without.emplace_back("--without-state");
  EXPECT_NEAR(json["bits_per_token_with"].get<double>(),
              rondo_ok(eval).json()["bits_per_token"].get<double>(), 1e-4);
  EXPECT_NEAR(json["bits_per_token_without"].get<double>(),
              rondo_ok(without).json()["bits_per_token"].get<double>(), 1e-4);
}

TEST_F(Studies, PicturesStandAlone) {
  const std::string path = file("cka.svg");
  EXPECT_EQ(study("cka", ring(), {"-o", path}).code, 0);
  EXPECT_EQ(slurp(path).rfind("<svg xmlns=", 0), 0U);
}

TEST_F(Studies, CoefficientsAreThoseTrainingLogged) {
  const auto json = numbers("coefficients", sret());
  size_t points = 0;
  for (const auto& trace : json["runs"][0]["traces"]) points += trace["points"].size();
  EXPECT_EQ(json["runs"][0]["traces"].size(), 8U);  // 2 blocks, 2 sub-layers, 2 coefficients
  EXPECT_EQ(points, 8U * 3);                        // at steps 1, 2 and 4
}

TEST_F(Studies, LandscapeContinuesAndSharesItsPoints) {
  const Arguments small = {"--points", "3", "--items", "6", "--jobs", "2"};
  page("landscape", sret(), small);
  const std::string first = slurp(file("landscape.html"));
  // Existing points are not computed again: one is changed to see that it is reused.
  const std::string part = file("landscape.html.points.1.0");
  std::vector<std::string> lines = lines_of(slurp(part));
  ASSERT_EQ(lines.size(), 6U);  // a key and every second of nine points
  EXPECT_EQ(lines_of(slurp(file("landscape.html.points.1.1"))).size(), 5U);
  spill(part, lines[0] + "\n[0,0,77.5]\n");
  page("landscape", sret(), small);
  EXPECT_NE(slurp(file("landscape.html")), first);
  EXPECT_EQ(lines_of(slurp(part)).size(), 6U);
  Arguments alone = small;
  alone.back() = "1";
  alone.insert(alone.end(), {"-o", file("alone.html"), "--json"});
  const auto json = nlohmann::json::parse(study("landscape", sret(), alone).out, nullptr, false);
  EXPECT_EQ(json["runs"][0]["losses"].size(), 3U);
  EXPECT_GT(json["runs"][0]["losses"][1][1].get<double>(), 0.0);
}

// DeiT-108, SReT-108 and its mixed depth (Figure 9), narrow, after two steps.
TEST_F(Studies, LandscapeOfDeepNetworksSharesAxes) {
  Arguments runs;
  for (const std::string& model :
       {std::string("deit-108"), std::string("deep-108"), std::string("deep-108-mixed")}) {
    images->put(model + ".toml", "[model]\nbase = \"sret/" + model +
                                     "\"\nimage = 16\npatch = 8\nwidth = 12\nhidden = 12\n"
                                     "heads = 2\nclasses = 6\ndrop_path = 0.0\n"
                                     "[augment]\ncrop = \"none\"\n"
                                     "[train]\nsteps = 2\nbatch = 4\nthreads = 1\n");
    Arguments words = images->command(model);
    words[1] = images->file(model + ".toml");
    rondo_ok(words);
    runs.push_back(images->file(model));
  }
  Arguments words = {runs[1], runs[2], "--points", "3", "--items", "2", "--jobs", "2", "--json"};
  words.insert(words.end(), {"-o", file("deep.html")});
  const Result first = study("landscape", runs[0], words);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto json = nlohmann::json::parse(first.out);
  ASSERT_EQ(json["runs"].size(), 3U);
  for (const auto& run : json["runs"]) {
    EXPECT_EQ(run["radius"], json["runs"][0]["radius"]);
    EXPECT_EQ(run["seed"], json["runs"][0]["seed"]);
    EXPECT_TRUE(run["losses"][1][1].is_number());
  }
  // A study that lost a process's share of one run computes that alone, and ends the same.
  const std::string lost = file("deep.html.points.2.1");
  EXPECT_EQ(lines_of(slurp(lost)).size(), 5U);
  fs::remove(lost);
  const auto others = slurp(file("deep.html.points.2.0"));
  const Result again = study("landscape", runs[0], words);
  EXPECT_EQ(nlohmann::json::parse(again.out), json);
  EXPECT_EQ(lines_of(slurp(lost)).size(), 5U);
  EXPECT_EQ(slurp(file("deep.html.points.2.0")), others);
}

TEST_F(Studies, BadInputIsOneClearError) {
  expect_refusal(study("state", sret()), ExitCode::bad_input, "expected a");
  expect_late_refusal(study("signals", sret()), ExitCode::bad_input, "scheme 'ring'");
  expect_refusal(study("activations", lm(), {"--data", file("valid.txt")}), ExitCode::bad_input,
                 "language");
  expect_refusal(study("coefficients", images->file("train")), ExitCode::bad_input, "");
  expect_refusal(study("cka", ring(), {"--estimator", "best"}), ExitCode::usage, "--estimator");
  expect_refusal(study("cka", file("nothing")), ExitCode::bad_input, "nothing");
  expect_refusal(study("activations", sret(), {"--levels", "9"}), ExitCode::bad_input,
                 "no level '9'");
  expect_refusal(rondo({"study"}), ExitCode::usage, "");
  expect_refusal(rondo({"study", "tea-leaves", lm()}), ExitCode::usage, "");
}

TEST_F(Studies, EmptyDataAreOneClearError) {
  spill(file("empty.txt"), "");
  spill(file("empty.de"), "");
  spill(file("empty.en"), "");
  fs::create_directories(file("empty"));
  expect_late_refusal(study("state", lm(), {"--data", file("empty.txt")}), ExitCode::bad_input,
                      "empty");
  expect_late_refusal(study("cka", ring(), {"--data", file("empty")}), ExitCode::bad_input,
                      "empty");
  expect_refusal(study("attention-distance", sret(), {"--data", file("empty")}),
                 ExitCode::bad_input, "empty");
}

TEST_F(Studies, OtherTasksAndVocabulariesAreNotCompared) {
  rondo_ok({"tokenizer", "train", file("texts/0"), "-o", file("pieces.model"), "--vocab", "262"});
  train_pairs("pieces", {"--set", "data.tokenizer=" + file("pieces.model"), "--set",
                         "model.source_vocabulary=262", "--set", "model.target_vocabulary=262",
                         "--set", "model.padding=0"});
  expect_refusal(study("cka", ring(), {file("pieces")}), ExitCode::bad_input,
                 "its vocabulary differs");
  expect_refusal(study("cka", ring(), {sret()}), ExitCode::bad_input, "task 'translation'");
  expect_late_refusal(study("attention-distance", ring(), {sret()}), ExitCode::bad_input,
                      "task 'translation'");
}

TEST_F(Studies, ReportComparesRuns) {
  texts->train("longer", {"--set", "train.steps=8"});
  const std::string path = file("report.html");
  const Result result = rondo_ok({"report", lm(), file("longer"), "-o", path});
  const std::string html = slurp(path);
  EXPECT_NE(html.find("<td>train.steps</td><td>6</td><td>8</td>"), std::string::npos);
  EXPECT_NE(html.find("training loss"), std::string::npos);
  const auto json = rondo_ok({"report", lm(), file("longer"), "--json"}).json();
  EXPECT_EQ(json["runs"][1]["curves"]["loss"].size(), 8U);
  EXPECT_FALSE(json["differences"].empty());
  expect_refusal(rondo({"report", file("texts"), "-o", path}), ExitCode::bad_input, "texts");
}

}  // namespace
}  // namespace rondo::testing
