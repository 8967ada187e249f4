// A table of a paper as a file (tables/): rows to train, the published figures, and the paper's
// claims. The format is documented in docs/tables.md.
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
  std::string mini;  // these three override the recipe's
  std::string dataset;
  std::string mini_dataset;
  int64_t test_tokens = 0;
};

template <class V>
void describe(V& v, TableColumn& c) {
  v.field("label", c.label, "column header in the paper");
  v.field("recipe", c.recipe, "recipe that trains its rows");
  v.field("metric", c.metric, "test metric",
          one_of({"bleu", "accuracy", "bits_per_token", "bits_per_byte", "word_perplexity"}));
  v.field("mini", c.mini, "overlay for --mini, instead of the recipe's");
  v.field("dataset", c.dataset, "data set, instead of the recipe's");
  v.field("mini_dataset", c.mini_dataset, "data set with --mini, instead of the recipe's");
  v.field("test_tokens", c.test_tokens, "language models: number of test tokens to score; 0 = all",
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
  std::string parameters;               // as printed in the paper: "8.94M"
  std::string multiply_adds;            // "1.4G"
  std::string step_time;                // "1.07"
  std::string differs;                  // our count, where it differs from the printed one
  ConfigTable set;                      // changes at either size
  ConfigTable full;                     // at full size only
  ConfigTable mini;                     // with --mini only
  std::map<std::string, double> paper;  // by column

  bool has(const std::string& column) const;
};

template <class V>
void describe(V& v, TableRow& c) {
  v.field("label", c.label, "row label in the paper");
  v.field("model", c.model, "a named model");
  v.field("recipe", c.recipe, "recipe, instead of the column's");
  v.field("columns", c.columns, "columns it is trained for; empty = all");
  v.field("start", c.start, "initialize from the weights of this row");
  v.field("teacher", c.teacher, "row to use as the teacher");
  v.field("parameters", c.parameters, "as printed in the paper, for example 8.94M");
  v.field("multiply_adds", c.multiply_adds, "as printed in the paper, for example 1.4G");
  v.field("step_time", c.step_time, "as printed in the paper");
  v.field("differs", c.differs, "our count, where it differs from the printed one");
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
  v.field("text", c.text, "the claim of the paper");
  v.field("better", c.better, "the row claimed to be better");
  v.field("than", c.than, "the row it is compared with");
  v.field("column", c.column, "column of the comparison; empty = all that have both rows");
  v.field("margin", c.margin, "minimum difference, in units of the metric");
}

struct PaperTable {
  std::string name;  // "ringformer/table4"
  std::string title;
  std::string paper;
  std::string place;               // "Table 4"
  std::string parameters = "all";  // what counts cover; or "without embeddings"
  double mini_minutes = 0;         // estimate for all rows once, at mini size, on one core
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<TableClaim> claims;

  const TableColumn& column(const std::string& name) const;  // "" = the first; Error{usage}
  // The column whose runs `column` uses: the first with the same recipe, overlay and data. Columns
  // that differ only in the metric share their runs.
  const TableColumn& runs_of(const TableColumn& column) const;
  const TableRow& row(const std::string& name) const;  // Error{usage}
};

template <class V>
void describe(V& v, PaperTable& c) {
  v.field("title", c.title, "what the table shows");
  v.field("paper", c.paper, "RingFormer, Block-Recurrent Transformer, SReT or Rondo");
  v.field("place", c.place, "location in the paper");
  v.field("parameters", c.parameters, "what its counts cover",
          one_of({"all", "without embeddings"}));
  v.field("mini_minutes", c.mini_minutes,
          "minutes for all rows once, at mini size, on one core, from 'table run --dry-run'",
          at_least(0));
}

// Whether a larger score is better.
bool larger_is_better(const std::string& metric);

// `given`: a name in tables/ or the path of a TOML file. Every row, column and recipe it references
// must exist. Throws Error{bad_input} with file and line, Error{usage} if there is no such table.
PaperTable load_table(const std::string& given);
std::vector<std::string> table_names();

// "ringformer/table4:static" or "ringformer/table4:static@wmt14" names one row (and column) of a
// table; nullopt if `given` is not such a name.
struct RowName {
  std::string table;
  std::string row;
  std::string column;
};
std::optional<RowName> parse_row_name(const std::string& given);

// What to train: a recipe, a TOML file, or a row of a table, with overrides.
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
