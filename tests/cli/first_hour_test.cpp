// The first hour: from data on disk to a model in use; stopped runs, moved runs, exports.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

namespace fs = std::filesystem;

// A text of some length, always the same.
std::string story(int64_t lines, uint64_t seed = 1) {
  static const std::vector<std::string> kWords = {"the ",   "old ",  "man ",   "and ", "sea ",
                                                  "sails ", "home ", "again ", "by ",  "night "};
  CounterRandom random(seed, "story");
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    for (int i = 0; i < 8; ++i) text += kWords[random.below(kWords.size())];
    text += "\n";
  }
  return text;
}

// Small enough for a test; everything else comes from the recipe.
const Arguments kTiny = {"--set", "train.steps=4",       "--set", "model.width=16",
                         "--set", "model.hidden=32",     "--set", "model.heads=2",
                         "--set", "model.head_width=8",  "--set", "train.threads=1",
                         "--set", "model.time.window=8", "--set", "model.time.segment=32",
                         "--set", "model.time.states=4", "--set", "train.batch=2",
                         "--set", "train.eval_every=2"};

class FirstHour : public ::testing::Test {
 protected:
  FirstHour() { spill(file("novel.txt"), story(400)); }

  std::string file(const std::string& name) const { return folder_.file(name); }
  Arguments with_cache(Arguments words, const Arguments& more = {}) const {
    words.insert(words.end(), {"--cache", file("cache")});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // `rondo train novel.txt` for four steps.
  Result train(const std::string& run = "run", const Arguments& more = {}) const {
    Arguments words = {"train", file("novel.txt"), "-o", file(run)};
    words = with_cache(words, kTiny);
    words.insert(words.end(), more.begin(), more.end());
    return rondo_ok(words);
  }
  // A run stopped before its first evaluation: it has no best model.
  void train_and_stop(const std::string& run) const {
    train(run, {"--set", "train.eval_every=0"});
    fs::remove(file(run + "/best.safetensors"));
  }
  std::string generate(const std::string& model) const {
    return rondo_ok({"generate", model, "--prompt", "the old", "-n", "20", "--seed", "3",
                     "--threads", "1"})
        .out;
  }

  TempDir folder_;
};

TEST_F(FirstHour, TextChoosesTheSmallRecipeAndHoldsTheEndOut) {
  const Result result = train();
  EXPECT_EQ(result.out, file("run") + "\n");
  for (const char* part : {"novel.txt: ", " of text in 1 file", "the last 5 % of the text",
                           "recipe small-text: ", "next: rondo generate "}) {
    EXPECT_TRUE(contains(result.err, part)) << part << "\n" << result.err;
  }
  const std::string config = slurp(file("run/config.toml"));
  EXPECT_TRUE(contains(config, "train = \"" + file("novel.txt") + "#:-5%\"")) << config;
  EXPECT_TRUE(contains(config, "valid = \"" + file("novel.txt") + "#-5%:\"")) << config;
  EXPECT_TRUE(contains(config, "kind = \"block-recurrent\"")) << config;
  EXPECT_EQ(generate(file("run")).size(), 20U);  // special tokens are never sampled
}

TEST_F(FirstHour, CompressedFoldersAndSplits) {
  ASSERT_EQ(in_shell("gzip -k " + file("novel.txt")).code, 0);
  const auto shown = [&](const std::string& path, const Arguments& more = {}) {
    Arguments words = {"train", path, "--show-config"};
    words.insert(words.end(), more.begin(), more.end());
    return rondo_ok(words).out;
  };
  EXPECT_TRUE(contains(shown(file("novel.txt.gz")), "novel.txt.gz#:-5%"));
  fs::create_directories(file("texts"));
  for (int i = 0; i < 3; ++i) spill(file("texts/" + std::to_string(i)), story(50, uint64_t(i)));
  EXPECT_TRUE(contains(shown(file("texts")), "texts#:-5%"));
  fs::create_directories(file("split/train"));
  spill(file("split/train/a.txt"), story(50));
  spill(file("split/valid.txt"), story(9, 7));
  const std::string split = shown(file("split"));
  EXPECT_TRUE(contains(split, "train = \"" + file("split/train") + "\"")) << split;
  EXPECT_TRUE(contains(split, "valid = \"" + file("split/valid.txt") + "\"")) << split;
  const std::string recipe = shown(file("novel.txt"), {"--recipe", "block-recurrent-bytes"});
  EXPECT_TRUE(contains(recipe, "steps = 500000")) << recipe;
}

TEST_F(FirstHour, ATokenizerIsLearnedFirst) {
  const Result result = train("run", {"--tokenizer", "300"});
  EXPECT_TRUE(contains(result.err, "recipe small-pieces")) << result.err;
  const std::string config = slurp(file("run/config.toml"));
  EXPECT_TRUE(contains(config, "tokenizer = \"bpe:300\"")) << config;
  EXPECT_TRUE(contains(config, "vocabulary = 300")) << config;
  EXPECT_TRUE(fs::exists(file("run/tokenizer.text.model")));
  // The trained tokenizer is kept in the run: the text may be removed and found elsewhere later.
  fs::rename(file("novel.txt"), file("moved.txt"));
  rondo_ok(with_cache({"train", file("run"), "--set", "train.steps=6", "--set",
                       "data.train=" + file("moved.txt#:-5%"), "--set",
                       "data.valid=" + file("moved.txt#-5%:")}));
}

TEST_F(FirstHour, ParallelFilesAndImages) {
  spill(file("c.de"), story(120, 1));
  spill(file("c.en"), story(120, 2));
  const Result pairs = rondo_ok({"train", file("c.de"), file("c.en"), "--show-config"});
  for (const char* part : {"kind = \"encoder-decoder\"", "c.en#:-2%", "source = \"de\"",
                           "target = \"en\"", "tokenizer = \"bpe:5000\""}) {
    EXPECT_TRUE(contains(pairs.out, part)) << part << pairs.out;
  }
  EXPECT_TRUE(contains(pairs.err, "120 sentence pairs, de to en")) << pairs.err;
  const std::string pieces =
      rondo_ok({"train", file("c.de"), file("c.en"), "--tokenizer", "700", "--show-config"}).out;
  EXPECT_TRUE(contains(pieces, "source_vocabulary = 700")) << pieces;
  spill(file("short.en"), story(100, 2));
  const Result uneven = rondo({"train", file("c.de"), file("short.en"), "--show-config"});
  expect_refusal(uneven, ExitCode::bad_input, "has 120 lines");
  fs::create_directories(file("one/red"));
  spill(file("one/red/1.png"), "not decoded here");
  expect_refusal(rondo({"train", file("one"), "--show-config"}), ExitCode::bad_input,
                 "at least 2 classes, got 1 class");
}

TEST_F(FirstHour, WrongFilesAreRecognized) {
  spill(file("photo.jpg"), "\xFF\xD8\xFF\xE0 JFIF");
  spill(file("net.pth"), "PK\x03\x04........archive/data.pkl");
  const auto refusal = [](const Arguments& words, const std::string& part) {
    const Result result = rondo(words);
    expect_refusal(result, ExitCode::bad_input, part);
    EXPECT_FALSE(contains(result.err, "TOML error")) << result.err;
    EXPECT_FALSE(contains(result.err, "toml:")) << result.err;
  };
  refusal({"train", file("photo.jpg")}, "a JPEG image");
  refusal({"train", file("net.pth")}, "safetensors.torch.save_file");
  refusal({"generate", file("novel.txt")}, "rondo train " + file("novel.txt"));
  refusal({"classify", file("photo.jpg"), file("run")}, "the model comes first");
  refusal({"eval", file("net.pth")}, "a PyTorch file");
  refusal({"info", file("novel.txt")}, "got text");
  refusal({"info", file("photo.jpg")}, "a JPEG image");
  refusal({"generate", folder_.path()}, "neither a run folder");
  refusal({"classify", file("photo.jpg")}, "the model comes first");
  refusal({"data", "check", file("photo.jpg")}, "a JPEG image");
  for (const std::string& missing : {file("nowhere.txt"), file("nowhere"), std::string("no.txt")}) {
    expect_refusal(rondo({"train", missing}), ExitCode::io, missing + ": no such file or folder");
  }
  expect_refusal(rondo({"train", "smal-text"}), ExitCode::usage, "did you mean 'small-text'");
  expect_refusal(rondo({"train", file("novel.txt"), "--recipe", "smal-text"}), ExitCode::usage,
                 "did you mean 'small-text'");
}

TEST_F(FirstHour, ANewRecipeIsExplainedAndTrains) {
  const Result made = rondo_ok({"new", file("mine")});
  EXPECT_EQ(made.out, file("mine.toml") + "\n");
  const std::string text = slurp(file("mine.toml"));
  EXPECT_TRUE(contains(text, "# peak learning rate")) << text;
  EXPECT_TRUE(contains(text, "window = 32")) << text;
  expect_refusal(rondo({"new", file("mine")}), ExitCode::usage, "already exists");
  // The recipe's summary is printed.
  const auto shown = [](const std::string& what) {
    std::string all;
    for (std::string line :
         lines_of(rondo_ok({"train", what, "--show-config", "--set", "data.train=x"}).out)) {
      all += line.substr(0, line.find("  #")) + "\n";
    }
    return all;
  };
  const std::string a = shown(file("mine.toml"));
  EXPECT_EQ(a, shown("small-text"));
}

TEST_F(FirstHour, AStoppedRunIsUsedAsItsCheckpointHasIt) {
  train_and_stop("run");
  const Result result =
      rondo_ok({"generate", file("run"), "--prompt", "the", "-n", "5", "--threads", "1"});
  EXPECT_TRUE(contains(result.err, "using the checkpoint of step 4")) << result.err;
  const std::string checkpoint = file("run/checkpoints/00000004.safetensors");
  EXPECT_EQ(generate(checkpoint), generate(file("run")));
  rondo_ok({"info", checkpoint});
  // A run without any checkpoint is reported as such.
  fs::remove_all(file("run/checkpoints"));
  expect_refusal(rondo({"generate", file("run")}), ExitCode::bad_input, "has not saved a model");
}

TEST_F(FirstHour, RunsAreMovedContinuedListedAndDescribed) {
  train("runs/novel");
  fs::rename(file("runs"), file("elsewhere"));
  const std::string run = file("elsewhere/novel");
  const Result more = rondo_ok(with_cache({"train", run, "--set", "train.steps=6"}));
  EXPECT_TRUE(contains(more.err, "continuing from step 4")) << more.err;
  EXPECT_TRUE(contains(more.err, "learning rate: ")) << more.err;
  EXPECT_TRUE(contains(more.err, "instead of 4")) << more.err;
  const nlohmann::json listed = rondo_ok({"runs", file("elsewhere"), "--json"}).json();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].at("step"), 6);
  EXPECT_EQ(listed[0].at("recipe"), "small-text");
  EXPECT_EQ(listed[0].at("running"), false);
  EXPECT_EQ(listed[0].at("last_score").at("metric"), "valid_bits_per_byte");
  const std::string table = rondo_ok({"runs", file("elsewhere")}).out;
  EXPECT_TRUE(contains(table, "6 of 6")) << table;
  EXPECT_TRUE(contains(table, "finished")) << table;
  const std::string info = rondo_ok({"info", run}).out;
  for (const char* part : {"small-text", "bits per byte", "rondo generate", "checkpoints"}) {
    EXPECT_TRUE(contains(info, part)) << part << info;
  }
  expect_refusal(rondo({"runs", file("nowhere")}), ExitCode::io, "no such folder");
  expect_refusal(rondo({"train", run, "-o", file("other")}), ExitCode::usage, "its own folder");
}

TEST_F(FirstHour, MovedDataAreComparedByContent) {
  train();
  fs::rename(file("novel.txt"), file("same.txt"));
  const Result lost = rondo(with_cache({"train", file("run"), "--set", "train.steps=6"}));
  EXPECT_EQ(lost.code, 4) << lost.err;
  EXPECT_TRUE(contains(lost.err, "--set data.train=PATH")) << lost.err;
  const auto go_on = [&](const std::string& data) {
    return rondo(
        with_cache({"train", file("run"), "--set", "train.steps=6", "--set",
                    "data.train=" + data + "#:-5%", "--set", "data.valid=" + data + "#-5%:"}));
  };
  spill(file("other.txt"), story(400, 9));
  const Result other = go_on(file("other.txt"));
  EXPECT_EQ(other.code, 3) << other.err;
  EXPECT_FALSE(contains(other.err, "remove")) << other.err;
  EXPECT_EQ(go_on(file("same.txt")).code, 0);
}

TEST_F(FirstHour, AnExportNeedsNothingElse) {
  train("run", {"--tokenizer", "300"});
  const std::string before = generate(file("run"));
  rondo_ok({"export", file("run"), "-o", file("model")});
  for (const char* name :
       {"model.safetensors", "config.json", "tokenizer.text.model", "README.md"}) {
    EXPECT_TRUE(fs::exists(file("model/" + std::string(name)))) << name;
  }
  const std::string card = slurp(file("model/README.md"));
  for (const char* part : {"A language model", "novel.txt#:-5%", "valid_bits_per_byte", "commit"}) {
    EXPECT_TRUE(contains(card, part)) << part << card;
  }
  EXPECT_FALSE(contains(card, "of kind")) << card;
  EXPECT_FALSE(contains(slurp(file("model/config.json")), folder_.path())) << "no path of ours";
  fs::rename(file("model"), file("given"));
  fs::remove_all(file("run"));
  fs::remove_all(file("cache"));
  EXPECT_EQ(generate(file("given")), before);
  const std::string info = rondo_ok({"info", file("given")}).out;
  for (const char* part :
       {"kind          language-model", "score         bits per byte ", " at step "}) {
    EXPECT_TRUE(contains(info, part)) << part << info;
  }
  const auto score = rondo_ok({"eval", file("given"), "--data", file("novel.txt"), "--json",
                               "--threads", "1", "--cache", file("cache2")});
  EXPECT_FALSE(score.json().empty());
  rondo_ok(
      {"state", "read", file("given"), file("novel.txt"), "-o", file("s.state"), "--threads", "1"});
  expect_refusal(rondo({"export", file("given"), "-o", file("given")}), ExitCode::usage,
                 "already exists");
  expect_refusal(rondo({"export", file("given"), "-o", file("no/such/place")}), ExitCode::io,
                 "cannot create the folder");
  rondo_ok({"export", file("given"), "-o", file("half"), "--precision", "bf16"});
  EXPECT_LT(fs::file_size(file("half/model.safetensors")),
            fs::file_size(file("given/model.safetensors")));
  EXPECT_EQ(generate(file("half")).empty(), false);
}

TEST_F(FirstHour, AveragedModelsKeepTheirTokenizer) {
  train("run", {"--tokenizer", "300", "--set", "train.save_every=2"});
  rondo_ok({"average", file("run"), "-o", file("mean.safetensors")});
  fs::remove_all(file("run"));
  fs::remove_all(file("cache"));
  EXPECT_EQ(generate(file("mean.safetensors")).empty(), false);
  rondo_ok({"average", file("mean.safetensors"), file("mean.safetensors"), "-o",
            file("again.safetensors")});
  EXPECT_EQ(generate(file("again.safetensors")), generate(file("mean.safetensors")));
}

TEST_F(FirstHour, OutputsAreTriedFirst) {
  train();
  for (const Arguments& words : std::vector<Arguments>{
           {"state", "read", file("run"), file("novel.txt"), "-o", file("none/x.state")},
           {"generate", file("run"), "--state-out", file("none/x.state")},
           {"average", file("run"), "-o", file("none/x.safetensors")},
           {"tokenizer", "train", file("novel.txt"), "-o", file("none/x.model")}}) {
    const Result result = rondo(words);
    expect_refusal(result, ExitCode::io, "folder " + file("none") + " does not exist");
    EXPECT_LT(result.seconds, 5.0) << words[0];
  }
  expect_refusal(rondo({"average", file("run"), "-o", folder_.path()}), ExitCode::io,
                 "is a folder");
}

}  // namespace
}  // namespace rondo::testing
