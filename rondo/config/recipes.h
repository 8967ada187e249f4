// Recipes: how a paper trains, as files that inherit from each other, and the layers an experiment
// is made of: named model, recipe, mini overlay, changes (a table's row), --set. docs/tables.md has
// the format.
#pragma once

#include <string>
#include <vector>

#include "rondo/config/data_sets.h"
#include "rondo/config/train_config.h"

namespace rondo {

// What a recipe says besides the sections of an experiment.
struct RecipeHeader {
  std::string extends;
  std::string mini;
  std::string dataset;
  std::string mini_dataset;
  std::vector<std::string> needs;
};

template <class V>
void describe(V& v, RecipeHeader& c) {
  v.field("extends", c.extends, "the recipe that this one starts from");
  v.field("mini", c.mini, "the overlay that --mini applies");
  v.field("dataset", c.dataset, "the data set it trains on, by its name in recipes/data.toml");
  v.field("mini_dataset", c.mini_dataset, "the data set with --mini");
  v.field("needs", c.needs, "keys that whoever uses the recipe must set");
}

struct Recipe {
  std::string name;
  RecipeHeader header;
  ConfigTable sections;  // of the experiment, what the recipe extends included
};

// `given`: a name of recipes/ or the path of a TOML file. Error{bad_input} for a file that is
// wrong or extends itself, Error{usage} with the nearest name if there is none.
Recipe load_recipe(const std::string& given);

// Every recipe, without overlays and data.toml.
std::vector<std::string> recipe_names();
// The comment at the top of a recipe or table file: its first sentence.
std::string first_comment(const std::string& path);

// Everything that makes an experiment.
struct Layers {
  Recipe recipe;
  bool mini = false;
  std::vector<ConfigTable> changes;  // of a table's row, in order
  DataFolders data;
  std::vector<std::string> set;  // --set
};

struct Experiment {
  RunConfig config;
  ConfigTable table;    // all layers, each value with the place it came from
  std::string model;    // the named model below; "" if the recipe says kind instead
  std::string dataset;  // "" if data were given by --set
};

// Error{bad_input} if a key that the recipe needs is missing, or anything is wrong with the result.
Experiment resolve_experiment(const Layers& layers);

// The whole configuration, each line with the file and line that set it.
std::string explain_experiment(const Experiment& experiment);

}  // namespace rondo
