// Recipes: training settings as files that extend each other, and the layers of an experiment:
// named model, recipe, mini overlay, changes (a table row), --set. The format is documented in
// docs/tables.md.
#pragma once

#include <string>
#include <vector>

#include "rondo/config/data_sets.h"
#include "rondo/config/train_config.h"

namespace rondo {

// Keys of a recipe besides the sections of an experiment.
struct RecipeHeader {
  std::string extends;
  std::string mini;
  std::string dataset;
  std::string mini_dataset;
  std::vector<std::string> needs;
};

template <class V>
void describe(V& v, RecipeHeader& c) {
  v.field("extends", c.extends, "recipe to extend");
  v.field("mini", c.mini, "overlay for --mini");
  v.field("dataset", c.dataset, "data set, by its name in recipes/data.toml");
  v.field("mini_dataset", c.mini_dataset, "data set with --mini");
  v.field("needs", c.needs, "keys that the user must set");
}

struct Recipe {
  std::string name;
  RecipeHeader header;
  ConfigTable sections;  // of the experiment, including those of extended recipes
};

// `given`: a name in recipes/ or the path of a TOML file. Throws Error{bad_input} for a file that
// is invalid or extends itself, Error{usage} with the nearest name if there is no such recipe.
Recipe load_recipe(const std::string& given);

// All recipes except overlays and data.toml.
std::vector<std::string> recipe_names();
// The first sentence of the comment at the top of a recipe or table file.
std::string first_comment(const std::string& path);

// Everything that makes an experiment.
struct Layers {
  Recipe recipe;
  bool mini = false;
  std::vector<ConfigTable> changes;  // of a table row, in order
  DataFolders data;
  std::vector<std::string> set;  // --set
};

struct Experiment {
  RunConfig config;
  ConfigTable table;    // all layers, with source locations
  std::string model;    // the base model; "" if the recipe sets kind instead
  std::string dataset;  // "" if data.train is set explicitly
};

// Throws Error{bad_input} if a required key is missing or the result is invalid.
Experiment resolve_experiment(const Layers& layers);

// The full configuration, with the source of each line.
std::string explain_experiment(const Experiment& experiment);

}  // namespace rondo
