// Loading recipes and merging the layers of an experiment.
#include "rondo/config/recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"

namespace rondo {
namespace {

const std::vector<std::string> kSections = {"model", "data",      "augment", "distill",
                                            "train", "optimizer", "schedule"};

std::string recipe_path(const std::string& given) {
  const bool is_path = given.size() > 5 && given.compare(given.size() - 5, 5, ".toml") == 0;
  if (is_path) return given;
  std::string path = find_shared("recipes", given);
  if (!path.empty()) return path;
  const std::string guess = did_you_mean(given, recipe_names());
  throw Error(ExitCode::usage,
              fmt::format("unknown recipe '{}', and no such file or folder", printable(given)),
              guess.empty() ? "'rondo recipes' lists all names" : guess);
}

RecipeHeader read_header(const ConfigTable& file) {
  RecipeHeader header;
  read_config(file, "", header, kSections);
  return header;
}

Recipe load_chain(const std::string& given, std::vector<std::string>& chain) {
  const std::string path = recipe_path(given);
  if (std::find(chain.begin(), chain.end(), path) != chain.end()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: extends itself: {} -> {}", chain.front(),
                                                 join(chain, " -> "), path));
  }
  chain.push_back(path);
  ConfigTable file = ConfigTable::from_file(path);
  const RecipeHeader own = read_header(file);
  Recipe recipe;
  if (!own.extends.empty()) recipe = load_chain(own.extends, chain);
  recipe.name = given;
  recipe.header.extends = own.extends;
  if (!own.mini.empty()) recipe.header.mini = own.mini;
  if (!own.dataset.empty()) recipe.header.dataset = own.dataset;
  if (!own.mini_dataset.empty()) recipe.header.mini_dataset = own.mini_dataset;
  recipe.header.needs.insert(recipe.header.needs.end(), own.needs.begin(), own.needs.end());
  for (const char* key : {"extends", "mini", "dataset", "mini_dataset", "needs"}) file.erase(key);
  recipe.sections.merge(file);
  return recipe;
}

void check_needs(const Layers& layers, const ConfigTable& table) {
  for (const std::string& key : layers.recipe.header.needs) {
    if (table.has(key)) continue;
    throw Error(ExitCode::bad_input, fmt::format("recipe {} needs {}", layers.recipe.name, key),
                fmt::format("set it: --set {}=…", key));
  }
}

}  // namespace

Recipe load_recipe(const std::string& given) {
  std::vector<std::string> chain;
  return load_chain(given, chain);
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const std::string& name : list_shared("recipes")) {
    if (name != "data" && name.rfind("mini/", 0) != 0) names.push_back(name);
  }
  return names;
}

std::string first_comment(const std::string& path) {
  std::istringstream text(read_text_file(path, int64_t{1} << 20));
  std::string comment;
  for (std::string line; std::getline(text, line) && !line.empty() && line.front() == '#';) {
    comment += (comment.empty() ? "" : " ") + line.substr(std::min<size_t>(line.size(), 2));
    const size_t end = comment.find(". ");
    if (end != std::string::npos) return comment.substr(0, end);
  }
  if (!comment.empty() && comment.back() == '.') comment.pop_back();
  return comment;
}

Experiment resolve_experiment(const Layers& layers) {
  Experiment experiment;
  ConfigTable& table = experiment.table;
  table = layers.recipe.sections;
  const RecipeHeader& header = layers.recipe.header;
  if (layers.mini) {
    if (header.mini.empty()) {
      throw Error(ExitCode::usage, fmt::format("recipe {} has no mini size", layers.recipe.name),
                  "omit --mini");
    }
    table.merge(load_recipe(header.mini).sections);
  }
  for (const ConfigTable& change : layers.changes) table.merge(change);
  ConfigTable last;
  for (const std::string& assignment : layers.set) last.set(assignment);
  experiment.dataset =
      layers.mini && !header.mini_dataset.empty() ? header.mini_dataset : header.dataset;
  if (last.has("data.train") || table.has("data.train")) experiment.dataset.clear();
  if (!experiment.dataset.empty()) {
    table.merge(data_set_layer(experiment.dataset, layers.data));
  }
  table.merge(last);
  check_needs(layers, table);
  experiment.model = table.get_string("model.base").value_or("");
  experiment.config = read_run_config(table);
  return experiment;
}

std::string explain_experiment(const Experiment& experiment) {
  std::istringstream dump(dump_run_config(experiment.config));
  std::string out;
  std::string section;
  for (std::string line; std::getline(dump, line); out += line + "\n") {
    if (!line.empty() && line.front() == '[') section = line.substr(1, line.find(']') - 1);
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    std::string from = experiment.table.source_of(section + "." + line.substr(0, equals));
    if (from.empty()) {
      const bool named = section.rfind("model", 0) == 0 && !experiment.model.empty();
      from = named ? "model " + experiment.model : "default";
    }
    line += fmt::format("{:>{}}# {}", "", line.size() < 46 ? 46 - line.size() : 2, from);
  }
  return out;
}

}  // namespace rondo
