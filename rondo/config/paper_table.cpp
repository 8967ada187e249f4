// Reading and validating table files.
#include "rondo/config/paper_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

template <class Items>
std::vector<std::string> names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

template <class Items>
bool has_name(const Items& items, const std::string& name) {
  return std::any_of(items.begin(), items.end(), [&](const auto& i) { return i.name == name; });
}

template <class Items>
auto& named(Items& items, const std::string& name, const std::string& table, const char* what) {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const auto& i) { return i.name == name; });
  if (found != items.end()) return *found;
  const std::string guess = did_you_mean(name, names_of(items));
  throw Error(ExitCode::usage, fmt::format("{}: has no {} '{}'", table, what, printable(name)),
              guess.empty() ? fmt::format("it has: {}", join(names_of(items), ", ")) : guess);
}

// Reads and validates a table file; errors give the location in the file.
class TableReader {
 public:
  TableReader(const std::string& name, const std::string& path)
      : file_(ConfigTable::from_file(path)) {
    table_.name = name;
  }

  PaperTable read() {
    read_config(file_, "", table_, {"column", "row", "claim"});
    for (const std::string& key : file_.keys("column")) read_column(key);
    for (const std::string& key : file_.keys("row")) read_row(key);
    for (const std::string& key : file_.keys("claim")) read_claim(key);
    if (table_.columns.empty()) fail("column", "missing", "a table has at least one [column.NAME]");
    if (table_.rows.empty()) fail("row", "missing", "a table has at least one [row.NAME]");
    for (const TableRow& row : table_.rows) check_row(row);
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what,
                         const std::string& advice = "") const {
    throw Error(ExitCode::bad_input, fmt::format("{}: {}", file_.where(key), what), advice);
  }

  void require(const std::string& section, const char* key, const std::string& value) const {
    if (value.empty()) fail(section, fmt::format("{} is missing", key));
  }

  template <class Items>
  void require_name(const std::string& key, const Items& items, const std::string& name) const {
    if (name.empty() || has_name(items, name)) return;
    fail(key,
         fmt::format("expected one of {}, got '{}'", join(names_of(items), ", "), printable(name)));
  }

  void require_recipe(const std::string& key, const std::string& name) const {
    if (name.empty()) return;
    try {
      load_recipe(name);
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      fail(key, error.message(), error.advice());
    }
  }

  void read_column(const std::string& name) {
    const std::string key = "column." + name;
    TableColumn column;
    column.name = name;
    column.label = name;
    read_config(file_, key, column);
    require(key, "recipe", column.recipe);
    require(key, "metric", column.metric);
    require_recipe(key + ".recipe", column.recipe);
    require_recipe(key + ".mini", column.mini);
    table_.columns.push_back(column);
  }

  void read_row(const std::string& name) {
    const std::string key = "row." + name;
    TableRow row;
    row.name = name;
    row.label = name;
    read_config(file_, key, row, {"set", "full", "mini", "paper"});
    require(key, "model", row.model);
    if (!has_name(zoo(), row.model)) {
      fail(key + ".model", fmt::format("unknown model '{}'", printable(row.model)),
           did_you_mean(row.model, names_of(zoo())));
    }
    require_recipe(key + ".recipe", row.recipe);
    row.set = file_.section(key + ".set");
    row.full = file_.section(key + ".full");
    row.mini = file_.section(key + ".mini");
    file_.section(key + ".paper");  // throws unless it is a table
    for (const std::string& column : file_.keys(key + ".paper")) {
      const std::string place = fmt::format("{}.paper.{}", key, column);
      if (!has_name(table_.columns, column)) {
        fail(place,
             fmt::format("no such column; the table has {}", join(names_of(table_.columns), ", ")));
      }
      row.paper[column] = file_.get_number(place).value_or(0);
    }
    table_.rows.push_back(std::move(row));
  }

  void check_row(const TableRow& row) const {
    const std::string key = "row." + row.name;
    for (const std::string& column : row.columns) {
      require_name(key + ".columns", table_.columns, column);
    }
    for (const auto& [field, other] :
         {std::pair{".start", row.start}, std::pair{".teacher", row.teacher}}) {
      require_name(key + field, table_.rows, other);
      // Rows may only depend on earlier rows, which gives a training order.
      if (other.empty() || &table_.row(other) < &row) continue;
      fail(key + field, fmt::format("row '{}' must come before '{}'", other, row.name));
    }
  }

  void read_claim(const std::string& name) {
    const std::string key = "claim." + name;
    TableClaim claim;
    claim.name = name;
    read_config(file_, key, claim);
    require(key, "text", claim.text);
    require(key, "better", claim.better);
    require(key, "than", claim.than);
    require_name(key + ".better", table_.rows, claim.better);
    require_name(key + ".than", table_.rows, claim.than);
    require_name(key + ".column", table_.columns, claim.column);
    table_.claims.push_back(claim);
  }

  ConfigTable file_;
  PaperTable table_;
};

}  // namespace

bool TableRow::has(const std::string& column) const {
  return columns.empty() || std::find(columns.begin(), columns.end(), column) != columns.end();
}

const TableColumn& PaperTable::column(const std::string& wanted) const {
  return wanted.empty() ? columns.front() : named(columns, wanted, name, "column");
}

const TableColumn& PaperTable::runs_of(const TableColumn& wanted) const {
  const auto key = [](const TableColumn& c) {
    return std::tie(c.recipe, c.mini, c.dataset, c.mini_dataset, c.test_tokens);
  };
  return *std::find_if(columns.begin(), columns.end(),
                       [&](const TableColumn& c) { return key(c) == key(wanted); });
}

const TableRow& PaperTable::row(const std::string& wanted) const {
  return named(rows, wanted, name, "row");
}

bool larger_is_better(const std::string& metric) {
  return metric == "bleu" || metric == "accuracy";
}

std::vector<std::string> table_names() { return list_shared("tables"); }

PaperTable load_table(const std::string& given) {
  const bool is_path = given.size() > 5 && given.compare(given.size() - 5, 5, ".toml") == 0;
  const std::string path = is_path ? given : find_shared("tables", given);
  if (!path.empty()) return TableReader(given, path).read();
  const std::string guess = did_you_mean(given, table_names());
  throw Error(ExitCode::usage, fmt::format("unknown table '{}'", printable(given)),
              guess.empty() ? "'rondo table list' lists all names" : guess);
}

std::optional<RowName> parse_row_name(const std::string& given) {
  const size_t colon = given.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == given.size()) return std::nullopt;
  RowName name{given.substr(0, colon), given.substr(colon + 1), ""};
  if (const size_t at = name.row.find('@'); at != std::string::npos) {
    name.column = name.row.substr(at + 1);
    name.row.resize(at);
  }
  return name;
}

Experiment find_experiment(const ExperimentRequest& request) {
  Layers layers;
  if (const std::optional<RowName> name = parse_row_name(request.given)) {
    const PaperTable table = load_table(name->table);
    const TableRow& row = table.row(name->row);
    // Without a name, the first column that has the row.
    const auto first = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const TableColumn& c) { return row.has(c.name); });
    const bool any = name->column.empty() && first != table.columns.end();
    layers = row_layers(table, row, any ? *first : table.column(name->column), request.mini);
  } else {
    layers.recipe = load_recipe(request.given);
    layers.mini = request.mini;
  }
  layers.data = parse_data_folders(request.data);
  layers.set = request.set;
  return resolve_experiment(layers);
}

std::string experiment_stem(const std::string& given) {
  const auto stem = [](const std::string& path) {
    return std::filesystem::path(path).stem().string();
  };
  const std::optional<RowName> name = parse_row_name(given);
  if (!name.has_value()) return stem(given);
  return stem(name->table) + "-" + name->row + (name->column.empty() ? "" : "-" + name->column);
}

Layers row_layers(const PaperTable& table, const TableRow& row, const TableColumn& column,
                  bool mini) {
  if (!row.has(column.name)) {
    throw Error(ExitCode::usage,
                fmt::format("{}: row '{}' is not trained for column '{}'", table.name, row.name,
                            column.name),
                fmt::format("its columns: {}", join(row.columns, ", ")));
  }
  Layers layers;
  layers.recipe = load_recipe(row.recipe.empty() ? column.recipe : row.recipe);
  RecipeHeader& header = layers.recipe.header;
  if (!column.mini.empty()) header.mini = column.mini;
  if (!column.dataset.empty()) header.dataset = column.dataset;
  if (!column.mini_dataset.empty()) header.mini_dataset = column.mini_dataset;
  layers.mini = mini;
  layers.changes.push_back(ConfigTable::from_string(
      fmt::format("model.base = {}", toml_text(row.model)), table.name + ":" + row.name));
  layers.changes.push_back(row.set);
  layers.changes.push_back(mini ? row.mini : row.full);
  return layers;
}

}  // namespace rondo
