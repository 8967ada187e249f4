// Evaluating claims, on handwritten folders whose numbers can be computed on paper.
#include "rondo/tables/table_results.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rondo/base/files.h"
#include "rondo/tables/table_record.h"
#include "rondo/tables/table_report.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

constexpr const char* kTableText = R"(
title = "Made up"
paper = "Nobody"
place = "Table 0"
[column.main]
label = "Set"
recipe = "RECIPE"
metric = "METRIC"
[row.good]
model = "sret/t"
paper.main = 80.5
[row.bad]
model = "sret/t-global"
[row.broken]
model = "sret/tl"
[claim.better]
text = "Good is better than bad"
better = "good"
than = "bad"
[claim.margin]
text = "Good is better than bad by 5"
better = "good"
than = "bad"
margin = 5.0
[claim.breaks]
text = "Broken does not train"
better = "good"
than = "broken"
[claim.reverse]
text = "Bad is better than good"
better = "bad"
than = "good"
)";

class TableFolders : public ::testing::Test {
 protected:
  void make(const std::string& metric) {
    write_file(path("recipe.toml"), "[model]\nbase = \"sret/t\"\n[data]\ntrain = \"x\"\n");
    std::string text = kTableText;
    text.replace(text.find("RECIPE"), 6, path("recipe.toml"));
    text.replace(text.find("METRIC"), 6, metric);
    write_file(path("table.toml"), text);
    write_file(path("table.json"),
               R"({"name": "nobody/table0", "mini": true, "jobs": 1, "set": []})");
    metric_ = metric;
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  // A finished run; `right` of 100 images.
  void finish(const std::string& row, int seed, double score, int right = 0) {
    const std::string run = fmt::format("main/{}/seed{}", row, seed);
    std::filesystem::create_directories(path(run));
    const nlohmann::json json = {{"metrics", {{metric_, {{"score", score}}}}}};
    write_file(path(run + "/test.json"), json.dump());
    write_file(path(run + "/run.json"),
               R"({"parameters": 1234567, "commit": "abc", "cpu": "Z80"})");
    TestItems items;
    items.task = "image";
    for (int i = 0; i < 100; ++i) items.add_image(i < right, true, 1.0);
    items.save(path(run + "/test.items"));
  }

  void diverge(const std::string& row, int seed) {
    const std::string run = fmt::format("main/{}/seed{}", row, seed);
    std::filesystem::create_directories(path(run));
    write_file(path(run + "/diverged.json"), "{}");
  }

  testing::TempDir folder_;
  std::string metric_;
};

const ClaimResult& claim(const TableResults& results, const std::string& name) {
  for (const ClaimResult& c : results.claims) {
    if (c.claim.name == name) return c;
  }
  throw std::runtime_error("no claim " + name);
}

TEST_F(TableFolders, ClaimsAreJudgedByPairsOfSeeds) {
  make("accuracy");
  // Differences 2, 3, 4: mean 3, and 4.302653 / sqrt(3) = 2.484 to either side.
  for (int seed = 1; seed <= 3; ++seed) {
    finish("good", seed, 70 + seed);
    finish("bad", seed, 69);
    diverge("broken", seed);
  }
  const TableResults r = read_table_results(folder_.path());
  const ClaimResult& better = claim(r, "better");
  EXPECT_EQ(better.verdict, Verdict::holds);
  EXPECT_NEAR(better.difference, 3, 1e-12);
  EXPECT_NEAR(better.low, 3 - 2.484137712, 1e-8);
  EXPECT_NEAR(better.high, 3 + 2.484137712, 1e-8);
  // t = 3 sqrt(3) = 5.196 with 2 degrees of freedom: p = 1 - t / sqrt(2 + t²).
  EXPECT_NEAR(*better.p_value, 1 - std::sqrt(27.0 / 29.0), 1e-9);
  EXPECT_EQ(claim(r, "margin").verdict, Verdict::undecided);  // 5 lies within the interval
  EXPECT_EQ(claim(r, "reverse").verdict, Verdict::reversed);
  EXPECT_EQ(claim(r, "breaks").verdict, Verdict::holds);
  EXPECT_EQ(r.cell("main", "broken")->diverged, 3);
  EXPECT_EQ(r.cell("main", "good")->parameters, 1234567);
  EXPECT_EQ(*r.cell("main", "good")->paper, 80.5);
}

TEST_F(TableFolders, ARowWithFinishedSeedsHasNotOnlyDiverged) {
  make("accuracy");
  finish("good", 1, 70);
  diverge("good", 2);
  finish("bad", 2, 69);
  diverge("bad", 1);
  EXPECT_EQ(claim(read_table_results(folder_.path()), "better").verdict, Verdict::missing);
}

TEST_F(TableFolders, LowerIsBetterForBits) {
  make("bits_per_token");
  for (int seed = 1; seed <= 2; ++seed) {
    finish("good", seed, 1.0 + 0.001 * seed);
    finish("bad", seed, 1.1);
  }
  const TableResults r = read_table_results(folder_.path());
  EXPECT_EQ(claim(r, "better").verdict, Verdict::holds);
  EXPECT_NEAR(claim(r, "better").difference, 0.0985, 1e-12);
  EXPECT_EQ(claim(r, "reverse").verdict, Verdict::reversed);
  EXPECT_EQ(claim(r, "breaks").verdict, Verdict::missing);
}

TEST_F(TableFolders, OneSeedIsJudgedByItsItems) {
  make("accuracy");
  finish("good", 1, 80, 80);
  finish("bad", 1, 50, 50);
  const TableResults r = read_table_results(folder_.path());
  EXPECT_EQ(claim(r, "better").verdict, Verdict::holds);
  EXPECT_NEAR(claim(r, "better").difference, 30, 1e-12);
  EXPECT_NE(claim(r, "better").method.find("100 test items"), std::string::npos);
}

TEST_F(TableFolders, ReportsHaveEveryRowAndClaim) {
  make("accuracy");
  for (int seed = 1; seed <= 2; ++seed) {
    finish("good", seed, 70 + seed);
    finish("bad", seed, 60);
  }
  const TableResults r = read_table_results(folder_.path());
  for (const std::string& text : {table_text(r), table_markdown(r), table_html(r)}) {
    for (const char* part : {"good", "bad", "broken", "71.50", "1.23 M", "80.5", "holds",
                             "Good is better than bad", "commit abc"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
  }
  const auto json = nlohmann::json::parse(table_json(r));
  EXPECT_EQ(json["cells"].size(), 3U);
  EXPECT_EQ(json["cells"][0]["mean"], 71.5);
  EXPECT_EQ(json["claims"][0]["verdict"], "holds");
}

TEST_F(TableFolders, ReportsSayWhatWasSetInEveryRow) {
  make("accuracy");
  finish("good", 1, 71, 71);
  EXPECT_EQ(
      table_origins(read_table_results(folder_.path())),
      (std::vector<std::string>{
          "1 run, 0.0 hours together, threads per run: 0; Z80; Rondo at commit abc; training data "
          "unknown."}));
  write_file(path("table.json"), R"({"name": "nobody/table0", "mini": true, "jobs": 1,
                                     "set": ["train.steps=9", "train.seed=4"]})");
  const TableResults r = read_table_results(folder_.path());
  for (const std::string& text : {table_text(r), table_markdown(r), table_html(r)}) {
    EXPECT_NE(text.find("Set in every row: train.steps=9, train.seed=4."), std::string::npos);
  }
  EXPECT_EQ(nlohmann::json::parse(table_json(r))["set"].size(), 2U);
}

TEST_F(TableFolders, WhatWasNotRunIsNamedOnce) {
  make("accuracy");
  finish("good", 1, 71, 71);
  finish("bad", 1, 60, 60);
  const TableResults r = read_table_results(folder_.path());
  EXPECT_EQ(table_lines(r, r.table.column("main")).size(), 3U);  // head, good, bad
  EXPECT_EQ(rows_not_run(r, r.table.column("main")), "Not run: broken.\n");
  EXPECT_EQ(table_markdown(r).find("Broken does not train"), std::string::npos);
  EXPECT_EQ(table_html(r).find("Broken does not train"), std::string::npos);
}

TEST_F(TableFolders, ClaimsOfSeveralTablesAreOneList) {
  make("accuracy");
  for (int seed = 1; seed <= 2; ++seed) {
    finish("good", seed, 70 + seed);
    finish("bad", seed, 60);
  }
  const TableResults r = read_table_results(folder_.path());
  const std::string list = claims_markdown({r, r});
  const std::string line =
      "| Good is better than bad | Nobody, Table 0 (Set) | accuracy (%) ↑ | – | 71.50 ± 6.35 vs. "
      "60.00 ± 0.00 | **holds** |\n";
  const size_t first = list.find(line);
  ASSERT_NE(first, std::string::npos) << list;
  EXPECT_NE(list.find(line, first + 1), std::string::npos) << list;
  EXPECT_EQ(
      list.find("Claims of 2 tables that hold: 4; reversed: 2; undecided: 0; not tested: 2.\n"), 0U)
      << list;
  const std::string document = results_markdown({r, r}, {"a.html", "b.html"});
  EXPECT_NE(document.find(list), std::string::npos);
  EXPECT_NE(document.find("[Bars and learning curves](b.html)"), std::string::npos);
}

TEST_F(TableFolders, TheTrendIsTheChangeInTheLastQuarter) {
  make("accuracy");
  finish("good", 1, 72);
  finish("good", 2, 74);
  finish("bad", 1, 60);
  const auto log = [&](const std::string& run, double at6, double at8) {
    write_file(path("main/" + run + "/metrics.jsonl"),
               fmt::format("{{\"step\": 6, \"valid_accuracy\": {}}}\n"
                           "{{\"step\": 7, \"valid_accuracy\": 0}}\n"
                           "{{\"step\": 8, \"valid_accuracy\": {}}}\n",
                           at6, at8));
  };
  log("good/seed1", 70, 71);
  log("good/seed2", 70, 73);
  const TableResults without = read_table_results(folder_.path());
  EXPECT_EQ(table_trend(without, without.table.column("main")), "");
  log("bad/seed1", 61, 60.5);
  const TableResults r = read_table_results(folder_.path());
  EXPECT_EQ(table_trend(r, r.table.column("main")),
            "From step 6 to the last, 8, valid_accuracy changed by -0.5000 to +2.0000 (means of "
            "rows).\n");
}

TEST_F(TableFolders, NotesOfTheFolderArePartOfItsMarkdown) {
  make("accuracy");
  finish("good", 1, 71, 71);
  write_file(path("notes.md"), "Too short a training.\n\n");
  const std::string text = table_markdown(read_table_results(folder_.path()), "t.html");
  EXPECT_NE(text.find("\n\nToo short a training.\n\n1 run"), std::string::npos) << text;
}

TEST_F(TableFolders, ARecordHasTheResultsWithoutTheWeights) {
  make("accuracy");
  finish("good", 1, 72, 72);
  finish("good", 2, 74, 74);
  finish("bad", 1, 60, 60);
  diverge("broken", 1);
  std::filesystem::create_directories(path("main/bad/seed2"));  // started, not finished
  write_file(path("main/bad/seed2/config.toml"), "");
  write_file(path("main/good/seed1/best.safetensors"), "weights");
  write_file(path("main/good/seed1/metrics.jsonl"),
             "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"valid_loss\": 1}\n"
             "{\"step\": 3, \"loss\": 1}\n{\"step\": 4, \"seconds\": 120}\n"
             "{\"step\": 4, \"valid_loss\": 0.5}\n");
  const std::string record = path("record");
  EXPECT_EQ(record_table(folder_.path(), record), 4);
  EXPECT_FALSE(exists(record + "/main/good/seed1/best.safetensors"));
  EXPECT_TRUE(exists(record + "/main/good/seed1/test.items"));
  EXPECT_FALSE(exists(record + "/main/bad/seed2"));
  EXPECT_EQ(read_text_file(record + "/main/good/seed1/metrics.jsonl", 1000),
            "{\"step\": 2, \"valid_loss\": 1}\n{\"step\": 4, \"valid_loss\": 0.5}\n"
            "{\"step\": 4, \"seconds\": 120}\n");
  const TableResults r = read_table_results(record);
  EXPECT_EQ(r.cell("main", "good")->seeds.size(), 2U);
  EXPECT_NEAR(r.cell("main", "good")->seeds[0].minutes, 2, 1e-12);
  EXPECT_EQ(r.cell("main", "broken")->diverged, 1);
  EXPECT_EQ(claim(r, "better").verdict, Verdict::holds);  // by the items of seed 1
}

TEST_F(TableFolders, ARecordIsAddedToButNotMixed) {
  make("accuracy");
  finish("good", 1, 72);
  const std::string record = path("record");
  EXPECT_EQ(record_table(folder_.path(), record), 1);
  finish("good", 2, 73);
  EXPECT_EQ(record_table(folder_.path(), record), 2);
  std::filesystem::remove_all(record);
  finish("good", 3, 74);
  EXPECT_EQ(record_table(folder_.path(), record), 3);
  EXPECT_FALSE(exists(record + "/main/good/seed1/test.items"));  // the seeds decide
  write_file(path("table.json"),
             R"({"name": "nobody/table1", "mini": true, "jobs": 1, "set": []})");
  EXPECT_THROW(record_table(folder_.path(), record), Error);
}

TEST_F(TableFolders, AnotherFolderIsRefused) {
  EXPECT_ANY_THROW(read_table_results(folder_.path()));
}

}  // namespace
}  // namespace rondo
