// Table files: their contents, and one clear error with file and line for each mistake.
#include "rondo/config/paper_table.h"

#include <gtest/gtest.h>

#include "rondo/base/files.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

constexpr const char* kRecipe = R"(
[model]
base = "brt/slide-12l"
[data]
train = "somewhere"
[train]
steps = 100
)";

constexpr const char* kTable = R"(
title = "A test"
paper = "Block-Recurrent Transformer"
place = "Table 1"
parameters = "without embeddings"

[column.text]
label = "Text"
recipe = "RECIPE"
metric = "bits_per_token"

[row.slide]
label = "Slide:12L"
model = "brt/slide-12l"
parameters = "151M"
paper.text = 1.25

[row.rec]
model = "brt/rec-fixed-skip"
set = { model.width = 64, train.batch = 2 }

[claim.recurrence]
text = "Recurrence helps"
better = "rec"
than = "slide"
)";

class PaperTables : public ::testing::Test {
 protected:
  PaperTables() { write_file(folder_.path() + "/recipe.toml", kRecipe); }

  // The path of a table in which `from` is replaced by `to`.
  std::string write(const std::string& from = "", const std::string& to = "") {
    std::string text = kTable;
    text.replace(text.find("RECIPE"), 6, folder_.path() + "/recipe.toml");
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    write_file(folder_.path() + "/table.toml", text);
    return folder_.path() + "/table.toml";
  }

  std::string refusal(const std::string& from, const std::string& to) {
    try {
      load_table(write(from, to));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  }

  testing::TempDir folder_;
};

TEST_F(PaperTables, AreRead) {
  const PaperTable table = load_table(write());
  EXPECT_EQ(table.title, "A test");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].label, "Slide:12L");
  EXPECT_EQ(table.rows[0].paper.at("text"), 1.25);
  EXPECT_EQ(table.rows[1].label, "rec");
  ASSERT_EQ(table.claims.size(), 1U);
  EXPECT_EQ(table.claims[0].better, "rec");
}

TEST_F(PaperTables, ARowIsAnExperiment) {
  const std::string path = write();
  const Experiment row = find_experiment({path + ":rec", false, {}, {"train.seed=7"}});
  const auto& model = std::get<LanguageModelConfig>(row.config.model.network);
  EXPECT_EQ(model.time.kind, "block-recurrent");
  EXPECT_EQ(model.width, 64);
  EXPECT_EQ(row.config.train.batch, 2);
  EXPECT_EQ(row.config.train.steps, 100);
  EXPECT_EQ(row.config.train.seed, 7);
  EXPECT_EQ(row.table.source_of("model.width").substr(0, path.size()), path);
  EXPECT_EQ(experiment_stem(path + ":rec"), "table-rec");
}

TEST_F(PaperTables, ARowOfALaterColumnNeedsNoColumn) {
  const std::vector<std::string> set = {"data.train=images"};  // no data set is looked for
  const Experiment row = find_experiment({"sret/figure10:deep-108", true, {}, set});
  const Experiment named = find_experiment({"sret/figure10:deep-108@depth", true, {}, set});
  EXPECT_EQ(dump_run_config(row.config), dump_run_config(named.config));
}

TEST_F(PaperTables, MistakesAreSaidWithFileAndLine) {
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& part) {
    const std::string said = refusal(from, to);
    EXPECT_NE(said.find(part), std::string::npos) << to << ": " << said;
    EXPECT_NE(said.find("table.toml:"), std::string::npos) << said;
  };
  expect("title =", "tilte =", "table.toml:2: tilte: unknown key; did you mean 'title'?");
  expect("metric = \"bits_per_token\"", "metric = \"bits\"", "column.text.metric");
  expect("model = \"brt/slide-12l\"", "model = \"brt/slide-12\"", "unknown model 'brt/slide-12'");
  expect("paper.text = 1.25", "paper.txt = 1.25", "no such column");
  expect("paper.text = 1.25", "paper.text = \"1.25\"", "expected a number");
  expect("better = \"rec\"", "better = \"reccurent\"", "claim.recurrence.better");
  expect("label = \"Slide:12L\"", "start = \"rec\"", "must come before");
  expect("metric = \"bits_per_token\"", "", "metric is missing");
  expect("title = \"A test\"", "title = \"A test", "table.toml:2");
}

TEST_F(PaperTables, UnknownNamesAreGuessed) {
  const auto said = [](const std::string& given) -> std::string {
    try {
      find_experiment({given, false, {}, {}});
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(said(write() + ":recc").find("has no row 'recc'"), std::string::npos);
  EXPECT_NE(said(write() + ":rec@code").find("has no column 'code'"), std::string::npos);
  EXPECT_NE(said("ringformer/tabel4:ours").find("unknown table"), std::string::npos);
}

TEST(RowNames, AreTakenApart) {
  EXPECT_FALSE(parse_row_name("ringformer-translation").has_value());
  EXPECT_FALSE(parse_row_name("table:").has_value());
  const auto name = parse_row_name("ringformer/table4:static@wmt14");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->table, "ringformer/table4");
  EXPECT_EQ(name->row, "static");
  EXPECT_EQ(name->column, "wmt14");
}

}  // namespace
}  // namespace rondo
