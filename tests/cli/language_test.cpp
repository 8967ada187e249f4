// rondo eval, generate, state and tokenizer on a freshly trained model: what they print, that a
// document continued from a state file equals the whole document, and what they reject.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// A trained model in "run".
class LanguageVerbs : public ::testing::Test {
 protected:
  LanguageVerbs() { t.train("run", {"--set", "data.valid=" + t.file("valid.txt")}); }

  Arguments words(const std::string& verb, const Arguments& more) const {
    Arguments all = {verb, t.file("run"), "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string generate(const Arguments& more) const {
    return rondo_ok(words("generate", more)).out;
  }
  Result eval(const Arguments& more) const {
    Arguments all = words("eval", more);
    all.insert(all.end(), {"--cache", t.file("cache")});
    return rondo(all);
  }
  nlohmann::json score(const Arguments& more) const {
    Arguments all = more;
    all.push_back("--json");
    const Result result = eval(all);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.json();
  }
  void read_state(const std::string& text, const std::string& state) const {
    spill(t.file(state + ".txt"), text);
    rondo_ok({"state", "read", t.file("run"), t.file(state + ".txt"), "-o", t.file(state)});
  }

  Trainee t;
};

// ---- eval -------------------------------------------------------------------------------------

TEST_F(LanguageVerbs, EvalSaysWhatTheStatesAreWorth) {
  const double with = score({"--split", "valid"}).at("bits_per_token");
  const double without = score({"--split", "valid", "--without-state"}).at("bits_per_token");
  EXPECT_NE(with, without);
  t.train("window", {"--set", "model.time.kind=window", "--set", "train.steps=2"});
  expect_refusal(
      rondo({"eval", t.file("window"), "--data", t.file("valid.txt"), "--without-state"}),
      ExitCode::usage, "needs a model with recurrent states");
}

// The number after `label` in the output of --stats.
double stat_of(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0.0 : std::stod(text.substr(at + label.size()));
}

TEST_F(LanguageVerbs, RestoringAStateIsTwentyTimesFasterThanReadingAgain) {
  std::string document;
  for (uint64_t i = 0; document.size() < 16384; ++i) document += Trainee::sample_text(i);
  document.resize(16384);
  read_state(document, "long");
  double restored = 1e9;
  double read = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Arguments more = {"--tokens", "100", "--stats"};
    Arguments a = words("generate", {"--state-in", t.file("long")});
    Arguments b = words("generate", {"--prompt-file", t.file("long.txt")});
    a.insert(a.end(), more.begin(), more.end());
    b.insert(b.end(), more.begin(), more.end());
    const Result from_state = rondo_ok(a);
    const Result from_text = rondo_ok(b);
    EXPECT_EQ(from_state.out, from_text.out);
    restored = std::min(restored, stat_of(from_state.err, "ready in "));
    read = std::min(read, stat_of(from_text.err, "ready in "));
  }
  EXPECT_GE(read, 20.0 * restored) << read << " ms and " << restored << " ms";
}

TEST_F(LanguageVerbs, EvalAgreesWithTrainingAndWithItself) {
  const auto json = score({"--split", "valid"});
  const auto last = t.metrics("run").back();
  EXPECT_NEAR(json.at("bits_per_token"), last.at("valid_bits_per_token"), 1e-5);
  const auto size = static_cast<int64_t>(slurp(t.file("valid.txt")).size());
  EXPECT_EQ(json.at("tokens"), size - 1);
  EXPECT_EQ(json.at("documents"), 1);
  EXPECT_GT(json.at("tokens_per_second"), 0.0);
  EXPECT_GT(json.at("word_perplexity"), 1.0);
  const double per_byte = json.at("bits_per_byte");
  EXPECT_NEAR(per_byte * double(size), json.at("bits_per_token").get<double>() * double(size - 1),
              1e-3);
  double bits = 0;
  int64_t tokens = 0;
  for (const auto& bucket : json.at("by_position")) {
    bits += bucket.at("bits_per_token").get<double>() * bucket.at("tokens").get<double>();
    tokens += bucket.at("tokens").get<int64_t>();
  }
  EXPECT_EQ(tokens, size - 1);
  EXPECT_NEAR(bits / double(tokens), json.at("bits_per_token"), 1e-6);

  const auto train = score({"--split", "train"});
  EXPECT_EQ(train.at("documents"), 5);
  const auto rows = score({"--data", t.file("texts"), "--rows", "2"});
  EXPECT_NEAR(rows.at("bits_per_token"), train.at("bits_per_token"), 1e-5);
  EXPECT_EQ(rows.at("tokens"), train.at("tokens"));
  const auto some = score({"--split", "train", "--tokens", "50"});
  EXPECT_LT(some.at("tokens"), 200);
}

TEST_F(LanguageVerbs, EvalPrintsATableForPeople) {
  const Result result = eval({"--split", "valid"});
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* part : {"documents         1", "bits per token    ", "bits per byte     ",
                           "word perplexity   ", "tokens per second ", "position in document"}) {
    EXPECT_TRUE(contains(result.out, part)) << result.out;
  }
  const Result held_out = eval({});
  EXPECT_EQ(held_out.code, 0) << held_out.err;
  EXPECT_TRUE(contains(held_out.err, "has no test data; using its validation data"));
  expect_refusal(eval({"--data", t.file("nowhere")}), ExitCode::io, "nowhere");
  expect_refusal(eval({"--split", "dev"}), ExitCode::usage, "--split");
  for (const char* foreign : {"--agreement", "--score-only", "--precision=bf16", "--loops=2"}) {
    expect_refusal(eval({foreign}), ExitCode::usage, " is for ");
  }
}

TEST_F(LanguageVerbs, EvalGoesOnFromAState) {
  const std::string text = slurp(t.file("valid.txt"));
  spill(t.file("rest.txt"), text.substr(101));
  read_state(text.substr(0, 101), "begun");
  const auto whole = score({"--data", t.file("valid.txt"), "--state-out", t.file("whole.state")});
  const auto rest = score({"--data", t.file("rest.txt"), "--state-in", t.file("begun"),
                           "--state-out", t.file("rest.state")});
  const auto alone = score({"--data", t.file("rest.txt")});
  EXPECT_EQ(rest.at("tokens"), alone.at("tokens"));
  EXPECT_NE(rest.at("bits_per_token"), alone.at("bits_per_token"));
  // The states after the same text agree, and generation continues from either as from the text.
  const Arrays a = read_arrays(t.file("whole.state"));
  const Arrays b = read_arrays(t.file("rest.state"));
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.at("position").numbers(), std::vector<double>{double(text.size())});
  for (const auto& [name, array] : a) EXPECT_LE(max_difference(array, b.at(name)), 1e-5) << name;
  EXPECT_EQ(generate({"--state-in", t.file("whole.state"), "-n", "40", "--temperature", "0"}),
            generate({"--prompt-file", t.file("valid.txt"), "-n", "40", "--temperature", "0"}));
}

// ---- generate ---------------------------------------------------------------------------------

TEST_F(LanguageVerbs, GenerateIsAFunctionOfItsSeed) {
  const std::string text = generate({"--prompt", "round and ", "-n", "200"});
  EXPECT_GE(text.size(), 190u);
  EXPECT_EQ(generate({"--prompt", "round and ", "-n", "200", "--seed", "1"}), text);
  EXPECT_EQ(generate({"--prompt", "round and ", "-n", "200", "--stream"}), text);
  EXPECT_NE(generate({"--prompt", "round and ", "-n", "200", "--seed", "2"}), text);
  EXPECT_NE(generate({"--prompt", "again the ", "-n", "200"}), text);
  EXPECT_EQ(generate({"--prompt", "round and ", "-n", "0"}), "");
  EXPECT_NE(generate({"-n", "20"}), "");
  EXPECT_EQ(generate({"--prompt", "round ", "--top-k", "1", "-n", "50"}),
            generate({"--prompt", "round ", "--temperature", "0", "-n", "50"}));
  const Result stats = rondo_ok(words("generate", {"-n", "30", "--stats"}));
  EXPECT_TRUE(contains(stats.err, "ms/token")) << stats.err;
}

TEST_F(LanguageVerbs, GenerateReadsPromptsFromAnywhere) {
  spill(t.file("prompt"), "round and round");
  const std::string want = generate({"--prompt", "round and round", "-n", "60"});
  EXPECT_EQ(generate({"--prompt-file", t.file("prompt"), "-n", "60"}), want);
  const Result piped = run_program(
      "/bin/sh", {"-c", "cat '" + t.file("prompt") + "' | '" RONDO_BINARY "' generate '" +
                            t.file("run") + "' --threads 1 --prompt-file - -n 60"});
  EXPECT_EQ(piped.out, want) << piped.err;
  EXPECT_EQ(rondo_ok({"generate", t.file("run/best.safetensors"), "--threads", "1", "--prompt",
                      "round and round", "-n", "60"})
                .out,
            want)
      << "the model file alone";
  expect_refusal(rondo(words("generate", {"--prompt", "a", "--prompt-file", t.file("prompt")})),
                 ExitCode::usage, "mutually exclusive");
  expect_refusal(rondo(words("generate", {"--prompt-file", t.file("nowhere")})), ExitCode::io,
                 "nowhere");
  expect_refusal(rondo(words("generate", {"--temperature", "-1"})), ExitCode::usage,
                 "--temperature");
}

// ---- state ------------------------------------------------------------------------------------

TEST_F(LanguageVerbs, AStateContinuesItsDocument) {
  const std::string document = slurp(t.file("texts/3")).substr(0, 301);  // within a block of 8
  read_state(document, "s");
  for (const Arguments& how :
       {Arguments{}, Arguments{"--temperature", "0"}, Arguments{"--prompt", "more of it"}}) {
    spill(t.file("whole"), document + (how.size() > 1 && how[0] == "--prompt" ? how[1] : ""));
    Arguments from_state = {"--state-in", t.file("s"), "-n", "80"};
    Arguments from_text = {"--prompt-file", t.file("whole"), "-n", "80"};
    from_state.insert(from_state.end(), how.begin(), how.end());
    if (how.empty() || how[0] != "--prompt") {
      from_text.insert(from_text.end(), how.begin(), how.end());
    }
    EXPECT_EQ(generate(from_state), generate(from_text));
  }
}

// A text generated in parts, each by its own process, equals one generated at once; so does its
// state.
TEST_F(LanguageVerbs, AStateContinuesWhatWasBeingWritten) {
  const std::string whole =
      generate({"--prompt", "round and", "-n", "60", "--state-out", t.file("end")});
  std::string parts =
      generate({"--prompt", "round and", "-n", "7", "--state-out", t.file("state")});
  for (const char* count : {"1", "20", "3", "29"}) {
    parts += generate({"--state-in", t.file("state"), "-n", count, "--state-out", t.file("state")});
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(slurp(t.file("state")), slurp(t.file("end")));
}

TEST_F(LanguageVerbs, StateInfoAndFork) {
  read_state("round and round and again", "s");
  const Result info = rondo_ok({"state", "info", t.file("s"), "--json"});
  const auto json = info.json();
  EXPECT_EQ(json.at("tokens"), 25);
  EXPECT_EQ(json.at("rows"), 1);
  EXPECT_EQ(json.at("tensors").at("level.1.state"), (std::vector<int64_t>{1, 4, 16}));
  EXPECT_LT(json.at("bytes"), 100000);
  EXPECT_TRUE(contains(rondo_ok({"state", "info", t.file("s")}).out, "tokens  25"));
  EXPECT_EQ(rondo_ok({"state", "fork", t.file("s"), "-o", t.file("copy")}).out,
            t.file("copy") + "\n");
  EXPECT_EQ(slurp(t.file("copy")), slurp(t.file("s")));
  const std::string before = slurp(t.file("s"));
  generate({"--state-in", t.file("s"), "--state-out", t.file("copy"), "-n", "9"});
  EXPECT_EQ(slurp(t.file("s")), before);
  EXPECT_EQ(rondo_ok({"state", "info", t.file("copy"), "--json"}).json().at("tokens"), 34);
}

TEST_F(LanguageVerbs, StatesOfAnotherModelAreRefused) {
  read_state("round and round", "s");
  t.train("other", {"--set", "train.seed=2", "--set", "train.steps=2"});
  const auto refused = [&](const Arguments& arguments, const std::string& part) {
    expect_refusal(rondo(arguments), ExitCode::bad_input, part);
  };
  const std::string other = t.file("other");
  refused({"generate", other, "--state-in", t.file("s")}, "the state belongs to another model");
  refused({"eval", other, "--data", t.file("valid.txt"), "--cache", t.file("cache"), "--state-in",
           t.file("s")},
          "the state belongs to another model");
  refused({"state", "read", other, t.file("s.txt"), "--state-in", t.file("s"), "-o", t.file("x")},
          "the state belongs to another model");
  refused({"generate", t.file("run"), "--state-in", t.file("run/best.safetensors")},
          "not a state file");
  refused({"state", "info", t.file("s.txt")}, t.file("s.txt"));
  const std::string whole = slurp(t.file("s"));
  spill(t.file("cut"), whole.substr(0, whole.size() - 5));
  refused({"generate", t.file("run"), "--state-in", t.file("cut")}, t.file("cut"));
  EXPECT_FALSE(std::filesystem::exists(t.file("x")));
}

TEST_F(LanguageVerbs, OnlyTrainedLanguageModelsWrite) {
  const auto refused = [&](const std::string& run, const std::string& part) {
    expect_refusal(rondo({"generate", run}), ExitCode::bad_input, part);
  };
  refused(t.file("texts"), "is neither a run folder");
  std::filesystem::remove(t.file("run/best.safetensors"));
  std::filesystem::remove_all(t.file("run/checkpoints"));
  refused(t.file("run"), "has not saved a model or checkpoint yet");
  refused("brt/slide-12l", "has no weights");
}

// ---- tokenizer --------------------------------------------------------------------------------

TEST(TokenizerVerb, TrainsAVocabularyThatAModelUses) {
  const Trainee t;
  const Result made = rondo_ok(
      {"tokenizer", "train", t.file("texts"), "-o", t.file("small.model"), "--vocab", "300"});
  ASSERT_TRUE(std::filesystem::exists(t.file("small.model"))) << made.err;
  const Arguments pieces = {"--set", "data.tokenizer=" + t.file("small.model"),
                            "--set", "model.vocabulary=300",
                            "--set", "train.steps=30"};
  t.train("run", pieces);
  const Result scored = rondo_ok(
      {"eval", t.file("run"), "--data", t.file("valid.txt"), "--cache", t.file("cache"), "--json"});
  const auto json = scored.json();
  const auto bytes = static_cast<int64_t>(slurp(t.file("valid.txt")).size());
  EXPECT_LT(json.at("tokens"), bytes / 2) << "pieces are longer than bytes";
  EXPECT_LT(json.at("bits_per_byte"), json.at("bits_per_token"));
  const std::string text =
      rondo_ok({"generate", t.file("run"), "--prompt", "round ", "-n", "30"}).out;
  EXPECT_EQ(rondo_ok({"generate", t.file("run"), "--prompt", "round ", "-n", "30", "--stream"}).out,
            text);
  EXPECT_NE(text, "");

  // A state names its tokenizer too.
  rondo_ok({"state", "read", t.file("run"), t.file("valid.txt"), "-o", t.file("s")});
  rondo_ok({"generate", t.file("run"), "--state-in", t.file("s"), "-n", "5"});
  expect_refusal(
      rondo({"generate", t.file("run"), "--tokenizer", "bytes", "--state-in", t.file("s")}),
      ExitCode::bad_input, "the state belongs to another model");
  expect_refusal(rondo(t.command("few", {"--set", "data.tokenizer=" + t.file("small.model")})),
                 ExitCode::bad_input, "model.vocabulary: expected at least");
  expect_refusal(rondo(t.command("none", {"--set", "data.tokenizer=" + t.file("texts/1")})),
                 ExitCode::bad_input, t.file("texts/1"));
}

}  // namespace
}  // namespace rondo::testing
