// Every recipe, overlay and table in the repository: all resolve, and they remain few.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "rondo/base/files.h"
#include "rondo/config/paper_table.h"
#include "rondo/config/share.h"

namespace rondo {
namespace {

// Any folder will do: the data are not opened.
const DataFolders kAnywhere = {{"", "/"}};

TEST(ShippedTables, EveryRowIsAnExperimentAtBothSizes) {
  for (const std::string& name : table_names()) {
    const PaperTable table = load_table(name);
    EXPECT_FALSE(table.title.empty() || table.paper.empty() || table.place.empty()) << name;
    for (const TableColumn& column : table.columns) {
      for (const TableRow& row : table.rows) {
        if (!row.has(column.name)) continue;
        for (const bool mini : {false, true}) {
          if (mini && column.mini.empty() && load_recipe(column.recipe).header.mini.empty()) {
            continue;  // small as it is
          }
          SCOPED_TRACE(name + ":" + row.name + "@" + column.name + (mini ? " --mini" : ""));
          Layers layers = row_layers(table, row, column, mini);
          layers.data = kAnywhere;
          if (!row.start.empty()) layers.set.push_back("train.start=run");
          if (!row.teacher.empty()) layers.set.push_back("distill.teacher=run");
          try {
            const Experiment experiment = resolve_experiment(layers);
            const std::string task = experiment.config.model.task();
            const std::string wanted = column.metric == "bleu"       ? "translation"
                                       : column.metric == "accuracy" ? "image"
                                                                     : "lm";
            EXPECT_EQ(task, wanted);
            EXPECT_EQ(find_data_set(experiment.dataset).task, task);
          } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
          }
        }
      }
    }
  }
}

TEST(ShippedTables, EveryRecipeIsAnExperiment) {
  for (const std::string& name : recipe_names()) {
    for (const bool mini : {false, true}) {
      SCOPED_TRACE(name + (mini ? " --mini" : ""));
      Layers layers;
      layers.recipe = load_recipe(name);
      layers.mini = mini;
      if (mini && layers.recipe.header.mini.empty()) continue;
      layers.data = kAnywhere;
      for (const std::string& key : layers.recipe.header.needs) layers.set.push_back(key + "=run");
      EXPECT_NO_THROW(resolve_experiment(layers));
      EXPECT_FALSE(first_comment(find_shared("recipes", name)).empty());
    }
  }
}

TEST(ShippedTables, EveryOverlayAndDataSetIsUsed) {
  std::set<std::string> used;
  for (const std::string& name : recipe_names()) {
    const RecipeHeader header = load_recipe(name).header;
    used.insert({header.mini, header.dataset, header.mini_dataset, header.extends});
  }
  for (const std::string& name : table_names()) {
    for (const TableColumn& c : load_table(name).columns) {
      used.insert({c.mini, c.dataset, c.mini_dataset});
    }
  }
  for (const std::string& name : list_shared("recipes")) {
    if (name.rfind("mini/", 0) != 0) continue;
    const std::string& extended = load_recipe(name).header.extends;
    if (!extended.empty()) used.insert(extended);
  }
  for (const std::string& name : list_shared("recipes")) {
    if (name.rfind("mini/", 0) != 0) continue;
    EXPECT_EQ(used.count(name), 1U) << name << " is used nowhere";
  }
}

TEST(ShippedTables, StayFew) {
  size_t files = 0;
  int64_t lines = 0;
  for (const char* folder : {"recipes", "tables"}) {
    for (const std::string& name : list_shared(folder)) {
      const std::string text = read_text_file(find_shared(folder, name), 1 << 20);
      lines += std::count(text.begin(), text.end(), '\n');
      ++files;
    }
  }
  EXPECT_LE(files, 70U);
  EXPECT_LE(lines, 2500);
}

}  // namespace
}  // namespace rondo
