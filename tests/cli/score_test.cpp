// rondo score: its output in every form; several references, compressed files, stdin; comparing two
// systems; what it rejects.
#include <cmath>

#include "rondo/base/version.h"
#include "tests/cli/process.h"
#include "tests/data/data_test_util.h"

namespace rondo::testing {
namespace {

const std::string kVersionField = std::string("|version:rondo-") + kVersion;

// The example in sacreBLEU's documentation and tests.
class Score : public ::testing::Test {
 protected:
  Score() {
    put("hyp", "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n");
    put("other", "The dog bit the man.\nIt was not surprising.\nThe man had bitten him.\n");
    put("ref1", "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n");
    put("ref2", "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n");
  }

  std::string put(const std::string& name, const std::string& text) {
    spill(folder_.file(name), text);
    return folder_.file(name);
  }

  // rondo score with files of the folder, followed by the other arguments unchanged.
  Arguments words(const Arguments& files, const Arguments& more = {}) const {
    Arguments all = {"score"};
    for (const std::string& file : files) all.push_back(folder_.file(file));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Result run(const Arguments& files, const Arguments& more = {}) const {
    return rondo(words(files, more));
  }
  std::string out(const Arguments& files, const Arguments& more = {}) const {
    return rondo_ok(words(files, more)).out;
  }

  TempDir folder_;
};

TEST_F(Score, PrintsWhatSacreBleuPrints) {
  EXPECT_EQ(
      out({"hyp", "ref1", "ref2"}),
      "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp" + kVersionField +
          " = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)\n"
          "chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no" +
          kVersionField + " = 59.73\n");
}

TEST_F(Score, PrintsOnlyNumbers) {
  EXPECT_EQ(out({"hyp", "ref1", "ref2"}, {"-b"}), "48.53\n59.73\n");
  EXPECT_EQ(out({"hyp", "ref1", "ref2"}, {"--score-only", "--metrics", "bleu"}), "48.53\n");
  EXPECT_EQ(out({"hyp", "ref1", "ref2"}, {"-b", "--metrics", "bleu", "--tokenize", "none"}),
            "49.19\n");
  EXPECT_EQ(out({"hyp", "ref1", "ref2"}, {"-b", "--metrics=chrf,bleu", "--chrf-word-order=2"}),
            "48.53\n59.15\n");
  Arguments options_first = {"score", "--metrics", "chrf", "-b"};
  options_first.insert(options_first.end(),
                       {folder_.file("hyp"), folder_.file("ref1"), folder_.file("ref2")});
  EXPECT_EQ(rondo_ok(options_first).out, "59.73\n");
}

TEST_F(Score, SignatureFollowsTheOptions) {
  const std::string text =
      out({"hyp", "ref1"}, {"--tokenize", "char", "--smooth", "floor", "--effective-order",
                            "--lowercase", "--chrf-word-order", "2"});
  EXPECT_TRUE(contains(text, "BLEU|nrefs:1|case:lc|eff:yes|tok:char|smooth:floor[0.10]|version:"))
      << text;
  EXPECT_TRUE(contains(text, "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:"))
      << text;
}

TEST_F(Score, Json) {
  const nlohmann::json json = rondo_ok(words({"hyp", "ref1", "ref2"}, {"--json"})).json();
  EXPECT_EQ(json.at("sentences"), 3);
  EXPECT_EQ(json.at("references"), 2);
  const nlohmann::json& bleu = json.at("scores").at(0);
  EXPECT_EQ(bleu.at("name"), "BLEU");
  EXPECT_EQ(bleu.at("file"), folder_.file("hyp"));
  EXPECT_NEAR(bleu.at("score").get<double>(), 48.530827, 2e-8);
  EXPECT_EQ(bleu.at("correct"), (std::vector<int>{14, 7, 5, 3}));
  EXPECT_EQ(bleu.at("total"), (std::vector<int>{17, 14, 11, 8}));
  EXPECT_EQ(bleu.at("hypothesis_length"), 17);
  EXPECT_EQ(bleu.at("reference_length"), 18);
  EXPECT_NEAR(bleu.at("brevity_penalty").get<double>(), std::exp(1 - 18.0 / 17), 1e-12);
  EXPECT_EQ(json.at("scores").at(1).at("name"), "chrF2");
  EXPECT_FALSE(bleu.contains("confidence"));
}

TEST_F(Score, ReadsStdinAndCompressedFiles) {
  const std::string text = slurp(folder_.file("hyp"));
  put("hyp.gz", gzip(text));
  put("hyp.zst", zstd(text));
  put("crlf", "The dog bit the man.\r\nIt wasn't surprising.  \r\nThe man had just bitten him.");
  for (const char* name : {"hyp.gz", "hyp.zst", "crlf"}) {
    EXPECT_EQ(out({name, "ref1", "ref2"}, {"-b"}), "48.53\n59.73\n") << name;
  }
  const std::string line = "cat " + folder_.file("hyp") + " | " + RONDO_BINARY + " score - " +
                           folder_.file("ref1") + " " + folder_.file("ref2") + " -b";
  EXPECT_EQ(run_program("/bin/sh", {"-c", line}).out, "48.53\n59.73\n");
}

TEST_F(Score, Confidence) {
  const std::string text = out({"hyp", "ref1"}, {"--confidence"});
  EXPECT_TRUE(contains(text, "BLEU|nrefs:1|bs:1000|seed:12345|case:")) << text;
  EXPECT_TRUE(contains(text, "(μ = ")) << text;
  EXPECT_EQ(text, out({"hyp", "ref1"}, {"--confidence", "--seed", "12345", "--samples", "1000"}));
  EXPECT_NE(text, out({"hyp", "ref1"}, {"--confidence", "--seed", "1"}));
  const auto json = rondo_ok(words({"hyp", "ref1"}, {"--confidence", "--json"})).json();
  for (const nlohmann::json& score : json.at("scores")) {
    const nlohmann::json& interval = score.at("confidence");
    EXPECT_LE(interval.at("low").get<double>(), score.at("score").get<double>());
    EXPECT_GE(interval.at("high").get<double>(), score.at("score").get<double>());
    EXPECT_NEAR(interval.at("half_width").get<double>(),
                (interval.at("high").get<double>() - interval.at("low").get<double>()) / 2, 1e-12);
  }
}

TEST_F(Score, ComparesTwoSystems) {
  const Arguments against = {"--against", folder_.file("other")};
  const Result result = run({"hyp", "ref1", "ref2"}, against);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 8U) << result.out;
  EXPECT_TRUE(contains(lines[1], "hyp = 48.53 (μ = ")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "other = 68.01 (μ = ")) << lines[2];
  EXPECT_TRUE(contains(lines[3], "difference = -19.48 (μ = -")) << lines[3];
  EXPECT_TRUE(contains(lines[3], "), p = 0.")) << lines[3];

  Arguments more = against;
  more.emplace_back("--json");
  const auto json = rondo_ok(words({"hyp", "ref1", "ref2"}, more)).json();
  const nlohmann::json& bleu = json.at("scores").at(0);
  const double difference =
      bleu.at("score").get<double>() - bleu.at("against").at("score").get<double>();
  EXPECT_NEAR(bleu.at("difference").at("score").get<double>(), difference, 1e-12);
  EXPECT_LT(bleu.at("difference").at("p_value").get<double>(), 0.05);
  EXPECT_TRUE(bleu.at("confidence").contains("low"));
  EXPECT_TRUE(bleu.at("against").at("confidence").contains("low"));

  EXPECT_EQ(out({"hyp", "ref1"}, {"--against", folder_.file("hyp"), "-b", "--metrics", "chrf"}),
            "50.04 50.04 +0.00 1.0000\n");
}

TEST_F(Score, RefusesUnequalFiles) {
  put("short", "one\ntwo\n");
  put("empty", "");
  expect_refusal(run({"hyp", "short"}), ExitCode::bad_input, "hyp has 3 lines, but ");
  expect_refusal(run({"hyp", "short"}), ExitCode::bad_input, "short has 2\n");
  expect_refusal(run({"hyp", "ref1", "short"}), ExitCode::bad_input, "short has 2\n");
  expect_refusal(run({"hyp", "ref1"}, {"--against", folder_.file("short")}), ExitCode::bad_input,
                 "short has 2\n");
  expect_refusal(run({"empty", "ref1"}), ExitCode::bad_input,
                 "empty: expected lines of text, got none");
  put("bytes", "one\n\xff\nthree\n");
  expect_refusal(run({"bytes", "ref1"}), ExitCode::bad_input, "bytes:2: expected UTF-8");
  expect_refusal(run({"hyp", "nothing"}), ExitCode::io, "No such file");
}

TEST_F(Score, RefusesABadCommandLine) {
  expect_refusal(run({"hyp"}), ExitCode::usage, "references is required");
  expect_refusal(run({"hyp", "ref1"}, {"--metrics", "bleu,ter"}), ExitCode::usage,
                 "expected bleu or chrf, got 'ter'");
  expect_refusal(run({"hyp", "ref1"}, {"--tokenize", "intl"}), ExitCode::usage, "--tokenize");
  expect_refusal(run({"hyp", "ref1"}, {"--smooth", "add"}), ExitCode::usage, "--smooth");
  expect_refusal(run({"hyp", "ref1"}, {"--chrf-word-order", "3"}), ExitCode::usage, "from 0 to 2");
  expect_refusal(run({"hyp", "ref1"}, {"--samples", "0"}), ExitCode::usage, "from 1 to 1000000");
  expect_refusal(run({"hyp", "ref1"}, {"--confidance"}), ExitCode::usage,
                 "did you mean '--confidence'?");
}

}  // namespace
}  // namespace rondo::testing
