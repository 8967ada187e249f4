// rondo table, recipes and compare from the command line; a table that is killed repeatedly ends
// with the same bytes as one that runs undisturbed.
#include <gtest/gtest.h>

#include <random>

#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

constexpr const char* kTinyRecipe = R"(
[model]
base = "brt/slide-12l"
width = 16
hidden = 32
heads = 2
head_width = 8
[model.depth]
levels = 2
[model.time]
window = 8
segment = 16
states = 4
[train]
steps = 24
batch = 2
log_every = 1
eval_every = 8
save_every = 3
[optimizer]
kind = "adamw"
[schedule]
rate = 0.01
)";

constexpr const char* kTinyTable = R"(
title = "Tiny"
paper = "Rondo"
place = "a test"
[column.text]
recipe = "RECIPE"
metric = "bits_per_token"
[row]
slide = { model = "brt/slide-12l" }
rec = { model = "brt/rec-fixed-skip", set = { model.time.recurrent_layers = [1] } }
feedback = { model = "brt/feedback-fixed-skip", set = { model.time.recurrent_layers = [1] } }
long = { model = "brt/slide-12l", set = { model.time.window = 16 } }
[claim]
recurrence = { text = "Recurrence helps", better = "rec", than = "slide" }
)";

class Table : public ::testing::Test {
 protected:
  Table() {
    for (uint64_t i = 0; i < 3; ++i) spill(folder_.file("train" + std::to_string(i)), text(i));
    spill(folder_.file("valid"), text(7));
    std::string list;
    for (int i = 0; i < 3; ++i) list += "train" + std::to_string(i) + "\n";
    spill(folder_.file("train.list"), list);
    spill(folder_.file("recipe.toml"), std::string(kTinyRecipe) + "[data]\ntrain = \"" +
                                           folder_.file("train.list") + "\"\nvalid = \"" +
                                           folder_.file("valid") + "\"\ntest = \"" +
                                           folder_.file("valid") + "\"\n");
    std::string table = kTinyTable;
    table.replace(table.find("RECIPE"), 6, folder_.file("recipe.toml"));
    spill(folder_.file("tiny.toml"), table);
  }

  static std::string text(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string out;
    for (int i = 0; i < 1500; ++i) out += static_cast<char>('a' + random() % 5);
    return out;
  }

  Arguments run(const std::string& output, const Arguments& more = {}) const {
    Arguments all = {
        "table", "run",     folder_.file("tiny.toml"), "-o", folder_.file(output), "--jobs",
        "2",     "--cache", folder_.file("cache")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TempDir folder_;
};

TEST_F(Table, IsTrainedTestedAndShown) {
  const Result result = rondo_ok(run("out", {"--seeds", "2", "--rows", "slide,rec"}));
  EXPECT_NE(result.out.find("Recurrence helps"), std::string::npos) << result.out;
  const auto shown = rondo_ok({"table", "show", folder_.file("out"), "--json"}).json();
  EXPECT_EQ(shown["cells"][0]["seeds"].size(), 2U);
  EXPECT_GT(shown["cells"][0]["mean"], 1.0);
  EXPECT_LT(shown["cells"][0]["mean"], 8.0);
  EXPECT_EQ(shown["cells"][2]["seeds"].size(), 0U);  // not requested
  EXPECT_NE(shown["claims"][0]["verdict"], "not run");
  const auto record = nlohmann::json::parse(slurp(folder_.file("out/text/slide/seed1/run.json")));
  EXPECT_GT(record["parameters"], 0);
  EXPECT_FALSE(std::string(record["commit"]).empty());
  EXPECT_EQ(std::string(record["train_data"]).size(), 16U);
  // A second call does nothing and leaves the runs unchanged.
  const std::string before = slurp(folder_.file("out/text/rec/seed2/test.json"));
  rondo_ok(run("out", {"--seeds", "2", "--rows", "slide,rec"}));
  EXPECT_EQ(slurp(folder_.file("out/text/rec/seed2/test.json")), before);

  const Result compared =
      rondo_ok({"compare", folder_.file("out/text/rec/seed1"), folder_.file("out/text/slide/seed1"),
                "--json", "--cache", folder_.file("cache")});
  const auto json = compared.json();
  const double difference = json["metrics"]["bits_per_token"]["difference"];
  const double a = shown["cells"][1]["seeds"][0]["score"];
  const double b = shown["cells"][0]["seeds"][0]["score"];
  EXPECT_NEAR(difference, a - b, 1e-9);
}

TEST_F(Table, KilledTwentyTimesEndsWithTheSameBytes) {
  const Arguments longer = {"--seeds", "1", "--set", "train.steps=160"};
  rondo_ok(run("calm", longer));
  std::mt19937 random(4);
  const Arguments again = run("wild", longer);
  int kills = 0;
  for (int i = 0; i < 20; ++i) {
    Child child(again);
    pause_for(0.05 + 0.001 * static_cast<double>(random() % 700));
    if (child.ended()) break;  // on a very fast machine
    child.send(i % 3 == 0 ? SIGTERM : SIGKILL);
    child.wait();
    ++kills;
  }
  EXPECT_GE(kills, 10);
  rondo_ok(again);
  for (const char* row : {"slide", "rec", "feedback", "long"}) {
    for (const char* file : {"best.safetensors", "test.items"}) {
      const std::string name = std::string("/text/") + row + "/seed1/" + file;
      EXPECT_EQ(slurp(folder_.file("wild" + name)), slurp(folder_.file("calm" + name))) << name;
    }
  }
}

TEST_F(Table, ARowThatDivergesIsAResult) {
  const std::string table = slurp(folder_.file("tiny.toml"));
  spill(folder_.file("tiny.toml"),
        table +
            "[row.wild]\nmodel = \"brt/slide-12l\"\n"
            "set = { schedule.rate = 1e3, train.clip = 0, optimizer.kind = \"adam\" }\n");
  rondo_ok(run("out", {"--seeds", "1", "--rows", "wild,slide", "--set", "train.steps=60"}));
  const auto shown = rondo_ok({"table", "show", folder_.file("out"), "--json"}).json();
  const auto& wild = shown["cells"][4];
  EXPECT_EQ(wild["row"], "wild");
  EXPECT_EQ(wild["diverged"].get<int>() + static_cast<int>(wild["seeds"].size()), 1);
  EXPECT_EQ(shown["cells"][0]["seeds"].size(), 1U);
}

TEST_F(Table, MistakesAreOneMessage) {
  expect_refusal(rondo({"table", "run", "ringformer/tabel4"}), ExitCode::usage, "unknown table");
  expect_refusal(rondo({"table", "run", "ringformer/table4", "--mini"}), ExitCode::bad_input,
                 "--data multi30k=DIR");
  expect_refusal(rondo({"table", "run", "ringformer/table4", "--rows", "nothing"}), ExitCode::usage,
                 "no row");
  expect_refusal(rondo({"table", "show", folder_.path()}), ExitCode::bad_input,
                 "contains no table");
  expect_refusal(rondo({"train", "ringformer/table4:statik", "--mini"}), ExitCode::usage,
                 "did you mean");
  expect_refusal(rondo({"data", "get", "multi30k"}), ExitCode::usage, "no Debian package");
  rondo_ok(run("out", {"--seeds", "1", "--rows", "slide"}));
  expect_refusal(rondo(run("out", {"--set", "train.steps=5"})), ExitCode::bad_input,
                 "another table");
}

TEST_F(Table, ListsAndConfigurationsNeedNoData) {
  const Result list = rondo_ok({"table", "list"});
  EXPECT_NE(list.out.find("block-recurrent/table1"), std::string::npos);
  EXPECT_GE(rondo_ok({"table", "list", "--json"}).json().size(), 20U);
  EXPECT_NE(rondo_ok({"recipes"}).out.find("ringformer-translation"), std::string::npos);
  const Result config = rondo_ok({"train", folder_.file("tiny.toml") + ":rec", "--show-config"});
  EXPECT_NE(config.out.find("tiny.toml:"), std::string::npos) << config.out;
}

}  // namespace
}  // namespace rondo::testing
