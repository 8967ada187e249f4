// Command lines of rondo table and rondo recipes, and their lists.
#include "cli/table_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/usage.h"
#include "cli/verbs.h"
#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"
#include "rondo/tables/table_report.h"

namespace rondo::cli {
namespace {

void add_list_option(CLI::App* verb, const char* name, std::vector<std::string>& values,
                     const char* help) {
  verb->add_option(name, values, help)->delimiter(',')->take_all()->expected(1);
}

void make_absolute(std::vector<std::string>& folders) {
  for (std::string& folder : folders) {
    const size_t begin = folder.find('=') == std::string::npos ? 0 : folder.find('=') + 1;
    folder = folder.substr(0, begin) + std::filesystem::absolute(folder.substr(begin)).string();
  }
}

void add_run(CLI::App* table, int& exit_code) {
  auto options = std::make_shared<TableRunOptions>();
  auto dry_run = std::make_shared<bool>(false);
  TableRunOptions& o = *options;
  CLI::App* verb = table->add_subcommand(
      "run", "train and test the rows of a table; the same command continues");
  verb->add_option("table", o.table, "a name that 'rondo table list' lists, or a TOML file")
      ->required();
  verb->add_option("-o,--output", o.output, "folder for the runs (default: runs/<table>)");
  verb->add_flag("--mini", o.mini, "the small size, for a few CPU cores");
  verb->add_option("--data", o.data, "where a data set is: NAME=DIR")->take_all()->expected(1);
  verb->add_option("--seeds", o.seeds, "runs of each row, with seeds 1, 2, …")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_option("--jobs", o.jobs, "runs at a time, each with a share of the cores")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  add_list_option(verb, "--rows", o.rows, "only these rows, and those they build on");
  add_list_option(verb, "--columns", o.columns, "only these columns");
  verb->add_option("--set", o.set, "change a key of every row, for example train.steps=500")
      ->take_all()
      ->expected(1);
  verb->add_option("--cache", o.cache, "where tokenized text is kept (default: ~/.cache/rondo)");
  verb->add_flag("--dry-run", *dry_run, "say time and memory of every row; trains nothing");
  verb->callback([options, dry_run, &exit_code] {
    if (options->output.empty()) options->output = "runs/" + experiment_stem(options->table);
    options->program = own_program();
    make_absolute(options->data);
    if (*dry_run) {
      fmt::print("{}", table_forecast(*options));
      return;
    }
    exit_code = run_table(*options);
    if (exit_code == 0) fmt::print("{}", table_text(read_table_results(options->output)));
  });
}

void add_show(CLI::App* table) {
  auto options = std::make_shared<TableShowOptions>();
  CLI::App* verb =
      table->add_subcommand("show", "scores with intervals, and which claims of the paper hold");
  verb->add_option("folder", options->folder, "made by 'rondo table run'")->required();
  const auto format = [&](const char* flag, const char* name, const char* help) {
    verb->add_flag_callback(
        flag, [options, name] { options->format = name; }, help);
  };
  format("--markdown", "markdown", "print Markdown");
  format("--json", "json", "print JSON");
  format("--html", "html", "print a web page with bars and learning curves");
  verb->add_option("-o,--output", options->output, "file to write instead of standard output");
  verb->callback([options] { run_table_show(*options); });
}

std::string data_of(const PaperTable& table, bool mini) {
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) {
    const RecipeHeader header = load_recipe(column.recipe).header;
    const std::string own = mini ? column.mini_dataset : column.dataset;
    const std::string name = !own.empty() ? own : mini ? header.mini_dataset : header.dataset;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return join(names, ", ");
}

}  // namespace

void run_table_list(const RecipesOptions& options) {
  nlohmann::json json = nlohmann::json::array();
  if (!options.json) {
    fmt::print("{:<24} {:>4} {:>8}  {:<16} {:<16} {}\n", "table", "rows", "minutes", "data",
               "data with --mini", "title");
  }
  for (const std::string& name : table_names()) {
    const PaperTable table = load_table(name);
    if (options.json) {
      json.push_back({{"name", name},
                      {"paper", table.paper},
                      {"place", table.place},
                      {"title", table.title},
                      {"rows", table.rows.size()},
                      {"columns", table.columns.size()},
                      {"data", data_of(table, false)},
                      {"mini_data", data_of(table, true)},
                      {"mini_minutes", table.mini_minutes}});
    } else {
      fmt::print("{:<24} {:>4} {:>8.0f}  {:<16} {:<16} {}, {}: {}\n", name, table.rows.size(),
                 table.mini_minutes, data_of(table, false), data_of(table, true), table.paper,
                 table.place, table.title);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
}

void run_table_show(const TableShowOptions& options) {
  const TableResults results = read_table_results(options.folder);
  const std::string text = options.format == "markdown" ? table_markdown(results)
                           : options.format == "json"   ? table_json(results)
                           : options.format == "html"   ? table_html(results)
                                                        : table_text(results);
  if (options.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file(options.output, text);
  }
}

void run_recipes(const RecipesOptions& options) {
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    const std::string about = first_comment(find_shared("recipes", name));
    if (options.json) {
      json.push_back({{"name", name},
                      {"about", about},
                      {"mini", recipe.header.mini},
                      {"dataset", recipe.header.dataset},
                      {"mini_dataset", recipe.header.mini_dataset}});
    } else {
      fmt::print("{:<32} {}\n", name, about);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
}

void add_table_verbs(CLI::App& app, int& exit_code) {
  CLI::App* table =
      app.add_subcommand("table", "the papers' tables: train them, and see which claims hold");
  table->require_subcommand(1);
  auto list = std::make_shared<RecipesOptions>();
  CLI::App* listing = table->add_subcommand("list", "every table and trained figure");
  listing->add_flag("--json", list->json, "print JSON");
  listing->callback([list] { run_table_list(*list); });
  add_run(table, exit_code);
  add_show(table);

  auto recipes = std::make_shared<RecipesOptions>();
  CLI::App* verb = app.add_subcommand("recipes", "list the recipes: how the papers train");
  verb->add_flag("--json", recipes->json, "print JSON");
  verb->callback([recipes] { run_recipes(*recipes); });
}

}  // namespace rondo::cli
