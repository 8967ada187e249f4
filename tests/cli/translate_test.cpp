// Translation from the command line: train on two files, translate, score, average; streaming,
// repeatability, and what is rejected.
#include <algorithm>
#include <set>

#include "tests/cli/tampering.h"
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// Sentences of letters; the translation shifts each by one, which a tiny network learns in seconds.
std::pair<std::string, std::string> made_up_pairs(int64_t count, uint64_t seed) {
  CounterRandom random(seed, "pairs");
  std::string source;
  std::string target;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t length = 1 + random.below(9);
    for (uint64_t k = 0; k < length; ++k) {
      const auto letter = static_cast<char>(random.below(8));
      source += static_cast<char>('a' + letter);
      target += static_cast<char>('b' + letter);
    }
    source += '\n';
    target += '\n';
  }
  return {source, target};
}

const char* const kExperiment = R"([model]
kind = "encoder-decoder"
source_vocabulary = 260
target_vocabulary = 260
padding = 256
width = 32
hidden = 64
heads = 2
dropout = 0.0

[model.depth]
scheme = "ring"
levels = 2

[data]
tokenizer = "bytes"
batch_tokens = 512

[train]
steps = 200
batch = 64
threads = 1
log_every = 10
eval_every = 100
save_every = 20
keep = 3

[optimizer]
kind = "adam"

[schedule]
kind = "cosine"
rate = 0.01
warmup = 20
)";

class Pairs {
 public:
  Pairs() {
    for (const auto& [name, count] : {std::pair{"train", 400}, {"valid", 30}, {"test", 60}}) {
      const auto [source, target] = made_up_pairs(count, static_cast<uint64_t>(count));
      spill(file(std::string(name) + ".de"), source);
      spill(file(std::string(name) + ".en"), target);
    }
    spill(file("tiny.toml"), kExperiment);
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  Arguments command(const std::string& run, const Arguments& more = {}) const {
    Arguments words = {"train", file("tiny.toml"), "-o", file(run), "--cache", file("cache")};
    for (const char* split : {"train", "valid", "test"}) {
      words.push_back("--set");
      words.push_back(std::string("data.") + split + "=" + file(split));
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

 private:
  TempDir folder_;
};

// One model for all cases, because training takes seconds.
class TranslationVerbs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    pairs_ = new Pairs;
    rondo_ok(pairs_->command("run"));
  }
  static void TearDownTestSuite() {
    delete pairs_;
    pairs_ = nullptr;
  }
  static std::string file(const std::string& name) { return pairs_->file(name); }
  static std::string translate(const Arguments& more, const std::string& input = "test.de") {
    Arguments words = {"translate", file("run"), "--input", file(input)};
    words.insert(words.end(), more.begin(), more.end());
    return rondo_ok(words).out;
  }
  static Result shell(const std::string& command) {
    return run_program("/bin/sh", {"-c", command});
  }
  static Pairs* pairs_;
};
Pairs* TranslationVerbs::pairs_ = nullptr;

TEST_F(TranslationVerbs, LearnsAndScores) {
  const auto json = rondo_ok({"eval", file("run"), "--cache", file("cache"), "--json"}).json();
  EXPECT_EQ(json.at("sentences"), 60);
  double bleu = -1;
  for (const auto& score : json.at("scores")) {
    if (score.at("name") == "chrF2") {
      EXPECT_GT(score.at("score").get<double>(), 60.0);
    } else {
      bleu = score.at("score");
    }
  }
  ASSERT_GE(bleu, 0.0);
  // The same in two commands: translate, then score the files.
  spill(file("hypotheses"), translate({}));
  const std::string only =
      rondo_ok({"score", file("hypotheses"), file("test.en"), "--metrics", "bleu", "-b"}).out;
  EXPECT_NEAR(std::stod(only), bleu, 0.0051);
  EXPECT_EQ(rondo_ok({"eval", file("run"), "--cache", file("cache"), "-b"}).out, only);
}

TEST_F(TranslationVerbs, AgainstItselfThereIsNoDifference) {
  const auto json = rondo_ok({"compare", file("run"), file("run"), "--json"}).json();
  for (const char* metric : {"bleu", "chrf"}) {
    EXPECT_EQ(json.at("metrics").at(metric).at("difference"), 0.0);
    EXPECT_EQ(json.at("metrics").at(metric).at("p_value"), 1.0);
  }
}

TEST_F(TranslationVerbs, TextDoesNotDependOnBatchThreadsOrBuffer) {
  const std::string text = translate({"--batch", "32"});
  EXPECT_EQ(lines_of(text).size(), 60u);
  for (const char* batch : {"1", "7", "64"}) EXPECT_EQ(translate({"--batch", batch}), text);
  EXPECT_EQ(translate({"--threads", "1"}), text);
  EXPECT_EQ(translate({"--threads", "2"}), text);
  EXPECT_EQ(translate({"--buffer", "3"}), text);
  EXPECT_EQ(
      shell(std::string(RONDO_BINARY) + " translate " + file("run") + " < " + file("test.de")).out,
      text);
  // Another order of lines: the same translations, reordered.
  std::vector<std::string> source = lines_of(slurp(file("test.de")));
  std::reverse(source.begin(), source.end());
  std::string reversed;
  for (const std::string& line : source) reversed += line + "\n";
  spill(file("reversed.de"), reversed);
  std::vector<std::string> back = lines_of(translate({}, "reversed.de"));
  std::reverse(back.begin(), back.end());
  EXPECT_EQ(back, lines_of(text));
}

TEST_F(TranslationVerbs, LinesStayLines) {
  spill(file("odd.de"), "abc\n\n  \nabc\r\nabc\xff\n" + std::string(3000, 'a') + "\nabc");
  const std::vector<std::string> out = lines_of(translate({"--max-length", "20"}, "odd.de"));
  ASSERT_EQ(out.size(), 7u);
  EXPECT_EQ(out[1], "");
  EXPECT_EQ(out[2], "");
  EXPECT_EQ(out[3], out[0]) << "a carriage return is no text";
  EXPECT_EQ(out[6], out[0]) << "the last line needs no end";
  spill(file("empty.de"), "");
  EXPECT_EQ(translate({}, "empty.de").size(), 0u);
}

TEST_F(TranslationVerbs, AByteOrderMarkIsNoText) {
  const std::string mark = "\xEF\xBB\xBF";
  spill(file("plain.de"), "abc\nhh\n");
  spill(file("marked.de"), mark + "abc\nhh\n");
  const std::string text = translate({}, "plain.de");
  EXPECT_EQ(translate({}, "marked.de"), text);
  const std::string program = std::string(RONDO_BINARY) + " translate " + file("run");
  EXPECT_EQ(shell(program + " < " + file("marked.de")).out, text);
  // Only at the very beginning; the byte order mark itself may arrive in pieces.
  EXPECT_EQ(shell("(printf '\\357'; sleep 0.2; printf '\\273\\277abc\\nhh\\n') | " + program).out,
            text);
  spill(file("later.de"), "hh\n" + mark + "abc\n");
  EXPECT_NE(lines_of(translate({}, "later.de"))[1], lines_of(text)[0]);
}

TEST_F(TranslationVerbs, DamagedAndSpoiltModelsAreRefused) {
  const std::string model = file("run/best.safetensors");
  const std::string broken = file("broken.safetensors");
  const auto refused = [&](const std::string& part) {
    for (const char* verb : {"translate", "eval"}) {
      Arguments words = {verb, broken, "--tokenizer", "bytes"};
      const Arguments data = verb == std::string("eval") ? Arguments{"--data", file("test")}
                                                         : Arguments{"--input", file("test.de")};
      words.insert(words.end(), data.begin(), data.end());
      expect_refusal(rondo(words), ExitCode::bad_input, broken + ": " + part);
    }
  };
  flip_bit(model, broken, 0.5, 1);
  refused("checksum mismatch");
  rondo_ok(
      {"translate", broken, "--tokenizer", "bytes", "--input", file("test.de"), "--no-verify"});
  tamper(model, broken, [](Arrays& a) { spoil(a.at("target_embedding")); });
  refused("tensor 'target_embedding': expected finite numbers, got nan");
}

TEST_F(TranslationVerbs, SeveralTranslationsAndJson) {
  spill(file("two.de"), "abc\nhh\n");
  const std::vector<std::string> moses = lines_of(translate({"--n-best", "3"}, "two.de"));
  ASSERT_EQ(moses.size(), 6u);
  EXPECT_EQ(moses[0].rfind("0 ||| ", 0), 0u) << moses[0];
  EXPECT_EQ(moses[3].rfind("1 ||| ", 0), 0u) << moses[3];
  const std::vector<std::string> rows = lines_of(translate({"--n-best", "3", "--json"}, "two.de"));
  ASSERT_EQ(rows.size(), 2u);
  const auto first = nlohmann::json::parse(rows[0]);
  EXPECT_EQ(first.at("source"), "abc");
  EXPECT_EQ(first.at("source_tokens"), 3);
  ASSERT_EQ(first.at("translations").size(), 3u);
  double before = 0;
  std::set<std::string> texts;
  for (const auto& t : first.at("translations")) {
    EXPECT_LE(t.at("score").get<double>(), before);
    before = t.at("score");
    texts.insert(t.at("text").get<std::string>());
  }
  EXPECT_EQ(texts.size(), 3u) << "all different";
}

TEST_F(TranslationVerbs, FoldedAndSmallerWeightsTranslateAlike) {
  const std::string text = translate({"--signals", "apart"});
  EXPECT_EQ(translate({"--signals", "folded"}), text);
  const auto equal_lines = [&](const std::string& other) {
    const std::vector<std::string> a = lines_of(text);
    const std::vector<std::string> b = lines_of(other);
    EXPECT_EQ(a.size(), b.size());
    int64_t same = 0;
    for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
    return same;
  };
  EXPECT_GE(equal_lines(translate({"--precision", "int8"})), 54);
  EXPECT_GE(equal_lines(translate({"--precision", "bf16"})), 54);
}

// A trained network has few ties: decoding equals the training forward pass.
TEST_F(TranslationVerbs, DecodingAgreesWithTheNetworkAsTrained) {
  const auto agreement = [&](const char* weights) {
    return rondo_ok({"eval", file("run"), "--agreement", "--precision", weights, "--json"}).json();
  };
  const auto exact = agreement("fp32");
  EXPECT_EQ(exact.at("fp32").at("same"), 60);
  EXPECT_FALSE(exact.contains("bf16"));
  const auto rounded = agreement("bf16");
  EXPECT_GE(rounded.at("fp32").at("same"), 57) << rounded;
  EXPECT_GE(rounded.at("bf16").at("same"), 57) << rounded;
}

TEST_F(TranslationVerbs, AnswersBeforeTheInputEndsAndStopsQuietly) {
  const std::string program = std::string(RONDO_BINARY) + " translate " + file("run");
  shell("(echo abc; sleep 30) | timeout 20 " + program + " > " + file("early") + " 2>/dev/null & " +
        "for i in $(seq 100); do sleep 0.1; test -s " + file("early") +
        " && break; done; kill $!; cp " + file("early") + " " + file("seen"));
  EXPECT_EQ(lines_of(slurp(file("seen"))).size(), 1u);
  const Result gone =
      shell("yes abc | " + program + " --buffer 8 2> " + file("err") + " | head -n 3");
  EXPECT_EQ(lines_of(gone.out).size(), 3u);
  EXPECT_FALSE(contains(slurp(file("err")), "rondo:")) << slurp(file("err"));
}

TEST_F(TranslationVerbs, Averages) {
  const std::string mean = file("mean.safetensors");
  const std::string said = rondo_ok({"average", file("run"), "-o", mean, "--last", "2"}).out;
  EXPECT_TRUE(contains(said, "mean of 2 checkpoints")) << said;
  const Arrays averaged = read_arrays(mean);
  const Arrays a = below(read_arrays(file("run/checkpoints/00000180.safetensors")), "weight.");
  const Arrays b = below(read_arrays(file("run/checkpoints/00000200.safetensors")), "weight.");
  ASSERT_GT(averaged.size(), 10u);
  for (const auto& [name, array] : averaged) {
    const std::vector<double> mine = array.numbers();
    const std::vector<double> first = a.at(name).numbers();
    const std::vector<double> second = b.at(name).numbers();
    for (size_t i = 0; i < mine.size(); i += 7) {
      ASSERT_NEAR(mine[i], 0.5 * (first[i] + second[i]), 1e-6) << name;
    }
  }
  rondo_ok({"translate", mean, "--input", file("test.de"), "--tokenizer", "bytes"});
  rondo_ok({"average", mean, mean, "-o", file("same.safetensors")});
  EXPECT_EQ(read_arrays(file("same.safetensors")).size(), averaged.size());
  expect_refusal(rondo({"average", file("run"), "-o", mean, "--last", "9"}), ExitCode::bad_input,
                 "expected 9 checkpoints, got 3");
}

TEST_F(TranslationVerbs, KilledAndContinuedIsTheSameRun) {
  Child child(pairs_->command("killed"));
  wait_until([&] { return exists(file("killed/checkpoints/00000040.safetensors")); },
             "a checkpoint");
  child.send(SIGKILL);
  child.wait();
  rondo_ok(pairs_->command("killed"));
  const Arrays killed = read_arrays(file("killed/checkpoints/00000200.safetensors"));
  const Arrays whole = read_arrays(file("run/checkpoints/00000200.safetensors"));
  ASSERT_EQ(killed.size(), whole.size());
  for (const auto& [name, array] : whole) EXPECT_EQ(killed.at(name).bytes, array.bytes) << name;
}

TEST_F(TranslationVerbs, ARunKeepsItsTokenizer) {
  rondo_ok({"tokenizer", "train", file("train.de"), file("train.en"), "-o", file("t.model"),
            "--vocab", "270"});
  rondo_ok(
      pairs_->command("pieces", {"--set", "data.tokenizer=" + file("t.model"), "--set",
                                 "model.padding=0", "--set", "model.source_vocabulary=300", "--set",
                                 "model.target_vocabulary=300", "--set", "train.steps=3"}));
  std::filesystem::remove(file("t.model"));
  EXPECT_EQ(
      lines_of(rondo_ok({"translate", file("pieces"), "--input", file("test.de")}).out).size(),
      60u);
}

TEST_F(TranslationVerbs, RefusesWhatCannotWork) {
  expect_refusal(rondo({"translate", file("nowhere")}), ExitCode::bad_input, "nowhere");
  expect_refusal(rondo({"translate", "brt/slide-12l"}), ExitCode::bad_input, "has no weights");
  expect_refusal(rondo({"generate", file("run")}), ExitCode::bad_input,
                 "expected a language model, got a model of kind encoder-decoder");
  std::filesystem::copy_file(file("run") + "/best.safetensors", file("alone.safetensors"));
  expect_refusal(rondo({"translate", file("alone.safetensors")}), ExitCode::usage,
                 "does not name its tokenizer");
  expect_refusal(rondo({"translate", file("run"), "--precision", "int4"}), ExitCode::usage, "int4");
  spill(file("uneven.de"), "a\nb\nc\n");
  spill(file("uneven.en"), "a\nb\n");
  const Result uneven = rondo(pairs_->command("u", {"--set", "data.train=" + file("uneven")}));
  expect_refusal(uneven, ExitCode::bad_input, "3");
  EXPECT_TRUE(contains(uneven.err, "2")) << uneven.err;
  expect_refusal(rondo({"eval", file("run"), "--data", file("nothing")}), ExitCode::io,
                 "nothing.de");
}

}  // namespace
}  // namespace rondo::testing
