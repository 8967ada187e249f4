// Writing recipes commented with the descriptions of their keys.
#include "rondo/project/new_recipe.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "rondo/config/recipes.h"

namespace rondo {
namespace {

std::map<std::string, FieldHelp> help_by_key(const RunConfig& config) {
  std::map<std::string, FieldHelp> help;
  const std::string task = config.model.task();
  for (const std::string& section : run_config_sections(task)) {
    const std::vector<FieldHelp> fields = section == "model"
                                              ? model_config_help(config.model.kind())
                                              : run_config_help(section, task);
    for (const FieldHelp& field : fields) help[section + "." + field.key] = field;
  }
  return help;
}

// A comment wrapped at 100 columns.
std::string wrapped_comment(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  std::string line = "#";
  for (std::string word; words >> word; line += " " + word) {
    if (line.size() + word.size() < 100) continue;
    out += line + "\n";
    line = "#";
  }
  return out + line + "\n";
}

}  // namespace

std::string commented_recipe(const std::string& name, const std::string& from, bool mini) {
  Layers layers;
  layers.recipe = load_recipe(from);
  layers.recipe.header.dataset.clear();  // the file names its own data
  layers.recipe.header.mini_dataset.clear();
  layers.recipe.header.needs.clear();
  layers.mini = mini;
  const RunConfig config = resolve_experiment(layers).config;
  const std::map<std::string, FieldHelp> help = help_by_key(config);
  std::string text = fmt::format(
      "# {0}, from recipe {1}{2}. Commented-out keys show their default.\n"
      "#   rondo train {0}.toml --set data.train=PATH              trains it\n"
      "#   rondo train {0}.toml --set data.train=PATH --dry-run    estimates the time\n\n",
      name, from, mini ? " at its small size" : "");
  std::istringstream dump(dump_run_config(config));
  std::string section;
  for (std::string line; std::getline(dump, line);) {
    const size_t equals = line.find(" = ");
    if (!line.empty() && line.front() == '[') section = line.substr(1, line.find(']') - 1);
    if (equals == std::string::npos) {
      text += line + "\n";
      continue;
    }
    const auto found = help.find(section + "." + line.substr(0, equals));
    if (found == help.end()) {
      text += line + "\n";
      continue;
    }
    const FieldHelp& field = found->second;
    text += wrapped_comment(field.help + (field.allowed.empty() ? "" : " (" + field.allowed + ")"));
    text += (line.substr(equals + 3) == field.default_text ? "# " : "") + line + "\n";
  }
  return text;
}

}  // namespace rondo
