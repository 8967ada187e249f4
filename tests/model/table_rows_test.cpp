// Every row of every table: its network can be built and run (shapes only), and has the number of
// parameters printed in the paper.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rondo/config/paper_table.h"
#include "rondo/model/cost.h"

namespace rondo {
namespace {

const DataFolders kAnyFolder = {{"", "/"}};

RunConfig row_config(const PaperTable& table, const TableRow& row, const TableColumn& column,
                     bool mini) {
  Layers layers = row_layers(table, row, column, mini);
  layers.data = kAnyFolder;
  if (!row.start.empty()) layers.set.push_back("train.start=run");
  if (!row.teacher.empty()) layers.set.push_back("distill.teacher=run");
  return resolve_experiment(layers).config;
}

// A printed figure such as "8.94M": its value, and one unit in its last digit.
struct Printed {
  double value = 0;
  double unit = 1;

  explicit Printed(const std::string& text) {
    size_t used = 0;
    const double scale = text.back() == 'G' ? 1e9 : text.back() == 'M' ? 1e6 : 1;
    value = std::stod(text, &used) * scale;
    const size_t point = text.find('.');
    const size_t decimals = point == std::string::npos || point > used ? 0 : used - point - 1;
    unit = scale * std::pow(10.0, -static_cast<double>(decimals));
  }
  // Papers truncate some figures and round others.
  bool is(double count) const { return std::abs(count - value) < unit * 1.0001; }
};

class TableRows : public ::testing::TestWithParam<std::string> {};

TEST_P(TableRows, HaveTheParametersThatThePaperPrints) {
  const PaperTable table = load_table(GetParam());
  for (const TableRow& row : table.rows) {
    SCOPED_TRACE(row.name);
    const TableColumn& column = table.column(row.columns.empty() ? "" : row.columns[0]);
    const Cost cost = measure_cost(row_config(table, row, column, false).model);
    ASSERT_GT(cost.parameters, 0);
    if (row.parameters.empty() || !row.differs.empty()) continue;
    const bool all = table.parameters != "without embeddings";
    const auto count = static_cast<double>(all ? cost.parameters : cost.without_embeddings);
    EXPECT_TRUE(Printed(row.parameters).is(count))
        << "printed " << row.parameters << ", ours " << count;
  }
}

TEST_P(TableRows, AreSmallAndComparableAtMiniSize) {
  const PaperTable table = load_table(GetParam());
  for (const TableColumn& column : table.columns) {
    if (column.mini.empty() && load_recipe(column.recipe).header.mini.empty()) continue;
    for (const TableRow& row : table.rows) {
      if (!row.has(column.name)) continue;
      SCOPED_TRACE(row.name + "@" + column.name);
      const RunConfig config = row_config(table, row, column, true);
      EXPECT_LT(measure_cost(config.model).parameters, 20'000'000);
      EXPECT_GT(config.train.steps, config.schedule.warmup);
    }
  }
}

// The number of tokens, sentences or images in a run.
double seen(const RunConfig& config) {
  double units = static_cast<double>(config.train.steps * config.train.batch);
  units *= static_cast<double>(config.train.accumulate);
  const auto* lm = std::get_if<LanguageModelConfig>(&config.model.network);
  return lm == nullptr ? units : units * static_cast<double>(lm->time.segment);
}

TEST_P(TableRows, ThatAClaimComparesSeeAsMuch) {
  const PaperTable table = load_table(GetParam());
  for (const TableClaim& claim : table.claims) {
    const TableRow& a = table.row(claim.better);
    const TableRow& b = table.row(claim.than);
    if (!a.recipe.empty() || !b.recipe.empty()) continue;  // only the training differs
    for (const TableColumn& column : table.columns) {
      if (!a.has(column.name) || !b.has(column.name)) continue;
      for (const bool mini : {false, true}) {
        if (mini && column.mini.empty() && load_recipe(column.recipe).header.mini.empty()) continue;
        SCOPED_TRACE(claim.name + (mini ? " --mini" : ""));
        const RunConfig ours = row_config(table, a, column, mini);
        const RunConfig theirs = row_config(table, b, column, mini);
        EXPECT_EQ(seen(ours), seen(theirs));
        EXPECT_EQ(dump_config(ours.schedule), dump_config(theirs.schedule));
        EXPECT_EQ(dump_config(ours.optimizer), dump_config(theirs.optimizer));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, TableRows, ::testing::ValuesIn(table_names()),
                         [](const auto& given) {
                           std::string name = given.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace rondo
