// A table of a paper as a file (tables/): rows to train, the figures that the paper prints, and its
// claims. docs/tables.md has the format.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rondo/config/recipes.h"

namespace rondo {

// One recipe on one data set.
struct TableColumn {
  std::string name;
  std::string label;
  std::string recipe;
  std::string metric;
  std::string mini;  // these three: instead of the recipe's
  std::string dataset;
  std::string mini_dataset;
  int64_t test_tokens = 0;
};

template <class V>
void describe(V& v, TableColumn& c) {
  v.field("label", c.label, "as the paper heads it");
  v.field("recipe", c.recipe, "how its rows are trained");
  v.field("metric", c.metric, "the score of the test set",
          one_of({"bleu", "accuracy", "bits_per_token", "bits_per_byte", "word_perplexity"}));
  v.field("mini", c.mini, "the overlay that --mini applies, instead of the recipe's");
  v.field("dataset", c.dataset, "the data set, instead of the recipe's");
  v.field("mini_dataset", c.mini_dataset, "the data set with --mini, instead of the recipe's");
  v.field("test_tokens", c.test_tokens, "language models: tokens of the test set scored; 0 = all",
          at_least(0));
}

struct TableRow {
  std::string name;
  std::string label;
  std::string model;
  std::string recipe;
  std::vector<std::string> columns;
  std::string start;
  std::string teacher;
  std::string parameters;               // as the paper prints it: "8.94M"
  std::string multiply_adds;            // "1.4G"
  std::string step_time;                // "1.07"
  std::string differs;                  // where our count is not the printed one: what ours is
  ConfigTable set;                      // changes at any size
  ConfigTable full;                     // at full size only
  ConfigTable mini;                     // with --mini only
  std::map<std::string, double> paper;  // by column

  bool has(const std::string& column) const;
};

template <class V>
void describe(V& v, TableRow& c) {
  v.field("label", c.label, "as the paper prints it");
  v.field("model", c.model, "a named model");
  v.field("recipe", c.recipe, "instead of the column's");
  v.field("columns", c.columns, "the columns it is trained for; empty = all");
  v.field("start", c.start, "begin with the weights of this row");
  v.field("teacher", c.teacher, "learn from this row");
  v.field("parameters", c.parameters, "as the paper prints it, for example 8.94M");
  v.field("multiply_adds", c.multiply_adds, "as the paper prints it, for example 1.4G");
  v.field("step_time", c.step_time, "as the paper prints it");
  v.field("differs", c.differs, "what our count is, where it is not the printed one");
}

struct TableClaim {
  std::string name;
  std::string text;
  std::string better;
  std::string than;
  std::string column;
  double margin = 0;
};

template <class V>
void describe(V& v, TableClaim& c) {
  v.field("text", c.text, "what the paper says");
  v.field("better", c.better, "the row that is said to be better");
  v.field("than", c.than, "the row it is compared with");
  v.field("column", c.column, "in this column; empty = in all that have both rows");
  v.field("margin", c.margin, "by more than this, in units of the metric");
}

struct PaperTable {
  std::string name;  // "ringformer/table4"
  std::string title;
  std::string paper;
  std::string place;               // "Table 4"
  std::string parameters = "all";  // what counts are of: or "without embeddings"
  double mini_minutes = 0;         // all rows once at mini size on one core, about
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<TableClaim> claims;

  const TableColumn& column(const std::string& name) const;  // "" = the first; Error{usage}
  // The column whose runs serve `column`: the first with the same recipe, overlay and data. Columns
  // that differ in the metric alone score the same runs.
  const TableColumn& runs_of(const TableColumn& column) const;
  const TableRow& row(const std::string& name) const;  // Error{usage}
};

template <class V>
void describe(V& v, PaperTable& c) {
  v.field("title", c.title, "what the table shows");
  v.field("paper", c.paper, "RingFormer, Block-Recurrent Transformer, SReT or Rondo");
  v.field("place", c.place, "where in the paper");
  v.field("parameters", c.parameters, "what its counts are of",
          one_of({"all", "without embeddings"}));
  v.field("mini_minutes", c.mini_minutes,
          "minutes that all rows take once at mini size on one core, as 'table run --dry-run' says",
          at_least(0));
}

// Whether a larger score is better.
bool larger_is_better(const std::string& metric);

// `given`: a name of tables/ or the path of a TOML file. Every row, column and recipe that it names
// must exist. Error{bad_input} with file and line, Error{usage} if there is no such table.
PaperTable load_table(const std::string& given);
std::vector<std::string> table_names();

// "ringformer/table4:static" or "ringformer/table4:static@wmt14" names one row (and column) of a
// table; nothing if `given` is no such name.
struct RowName {
  std::string table;
  std::string row;
  std::string column;
};
std::optional<RowName> parse_row_name(const std::string& given);

// What a user asks to train: a recipe, a TOML file, or a row of a table, with what is changed.
struct ExperimentRequest {
  std::string given;
  bool mini = false;
  std::vector<std::string> data;  // NAME=DIR, or DIR
  std::vector<std::string> set;
};
Experiment find_experiment(const ExperimentRequest& request);
// A name for its run folder: "table4-static" for "ringformer/table4:static".
std::string experiment_stem(const std::string& given);

// The layers of one row in one column. `data` and `set` are left empty.
Layers row_layers(const PaperTable& table, const TableRow& row, const TableColumn& column,
                  bool mini);

}  // namespace rondo
