// Command lines of rondo table and rondo recipes, and their lists.
#include "cli/table_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "rondo/base/child_process.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"
#include "rondo/report/run_curves.h"
#include "rondo/tables/table_record.h"
#include "rondo/tables/table_report.h"

namespace rondo::cli {
namespace {

void make_absolute(std::vector<std::string>& folders) {
  for (std::string& folder : folders) {
    const size_t begin = folder.find('=') == std::string::npos ? 0 : folder.find('=') + 1;
    folder = folder.substr(0, begin) + std::filesystem::absolute(folder.substr(begin)).string();
  }
}

void add_run(CLI::App& table, int& exit_code) {
  auto verb = std::make_shared<TableRunVerb>();
  add_verb(table,
           {"run", "train and test the rows of a table; rerun the command to resume",
            "rondo table run ringformer/table4 --mini --seeds 1 -o runs/table4"},
           verb)
      ->callback([verb, &exit_code] {
        TableRunOptions& options = verb->run;
        if (options.output.empty()) options.output = "runs/" + experiment_stem(options.table);
        options.program = own_program();
        make_absolute(options.data);
        if (verb->dry_run) {
          fmt::print("{}", table_forecast(options));
          return;
        }
        exit_code = run_table(options);
        if (exit_code == 0) fmt::print("{}", table_text(read_table_results(options.output)));
      });
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

// Writes the page of every table to `pages`; returns links from the folder of `output`.
std::vector<std::string> write_pages(const std::vector<TableResults>& tables,
                                     const TableShowOptions& options) {
  if (options.pages.empty()) return {};
  if (!options.markdown) throw Error(ExitCode::usage, "--pages goes with --markdown", "add it");
  std::error_code ignored;  // write_file says what is wrong
  std::filesystem::create_directories(options.pages, ignored);
  const auto from = options.output.empty()
                        ? std::filesystem::current_path()
                        : std::filesystem::absolute(options.output).parent_path();
  const std::vector<std::string> names = short_run_names(options.folders);
  std::vector<std::string> links;
  for (size_t i = 0; i < tables.size(); ++i) {
    std::string name = names[i] + ".html";
    std::replace(name.begin(), name.end(), '/', '-');
    const std::string path = options.pages + "/" + name;
    write_file(path, table_html(tables[i]));
    links.push_back(std::filesystem::absolute(path).lexically_relative(from).string());
  }
  return links;
}

void run_table_show(const TableShowOptions& options) {
  std::vector<TableResults> tables;
  for (const std::string& folder : options.folders) tables.push_back(read_table_results(folder));
  const bool several = tables.size() > 1;
  if (options.html && several) {
    throw Error(ExitCode::usage, "--html shows one table, got several folders",
                "run 'rondo table show FOLDER --html' for each, or use --markdown --pages");
  }
  const std::vector<std::string> pages = write_pages(tables, options);
  std::string text;
  if (options.markdown) {
    text = several ? results_markdown(tables, pages)
                   : table_markdown(tables[0], pages.empty() ? "" : pages[0]);
  } else {
    for (size_t i = 0; i < tables.size(); ++i) {
      if (i > 0) text += options.json ? "," : "\n";
      text += options.html   ? table_html(tables[i])
              : options.json ? table_json(tables[i])
                             : table_text(tables[i]);
    }
    if (options.json && several) text = "[" + text + "]\n";
  }
  if (options.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file(options.output, text);
  }
}

void run_table_record(const TableRecordOptions& options) {
  const int64_t runs = record_table(options.folder, options.output);
  fmt::print(stderr, "{}: {} finished {} recorded\n", options.output, runs,
             runs == 1 ? "run" : "runs");
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
      add_verb(app, {"table", "reproduce the papers' tables and check their claims", ""});
  table->require_subcommand(1);
  auto list = std::make_shared<RecipesOptions>();
  add_verb(*table, {"list", "list every table and trained figure", "rondo table list"}, list)
      ->callback([list] { run_table_list(*list); });
  add_run(*table, exit_code);
  auto show = std::make_shared<TableShowOptions>();
  add_verb(*table,
           {"show", "show scores with intervals, and which claims of the paper hold",
            "rondo table show runs/table4 --html -o table4.html"},
           show)
      ->callback([show] { run_table_show(*show); });
  auto record = std::make_shared<TableRecordOptions>();
  add_verb(*table,
           {"record", "copy the results of the runs, without weights, to a small folder",
            "rondo table record runs/table4 -o records/table4"},
           record)
      ->callback([record] { run_table_record(*record); });

  auto recipes = std::make_shared<RecipesOptions>();
  add_verb(app, {"recipes", "list the training recipes", "rondo recipes"}, recipes)
      ->callback([recipes] { run_recipes(*recipes); });
}

}  // namespace rondo::cli
