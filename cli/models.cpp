// rondo models: the zoo, one line per model.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "rondo/config/trained_files.h"
#include "rondo/config/zoo.h"

namespace rondo::cli {

void run_models(const ModelsOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  size_t widest = 0;
  for (const ZooEntry& entry : zoo()) widest = std::max(widest, entry.name.size());
  for (const ZooEntry& entry : zoo()) {
    const std::string task = entry.config().task();
    const bool wanted =
        options.task.empty() || options.task == task || options.task == entry.config().kind();
    if (!wanted) continue;
    if (options.json) {
      rows.push_back(
          {{"name", entry.name}, {"paper", entry.paper}, {"row", entry.row}, {"task", task}});
    } else {
      fmt::print("{:<{}}  {:<11}  {}: {}\n", entry.name, widest, task, entry.paper, entry.row);
    }
  }
  if (options.json) fmt::print("{}\n", rows.dump(2));
}

void check_model(const std::string& model, const std::vector<std::string>& set) {
  resolve_model(model, set);
}

std::string check_trained(const std::string& run, const std::string& task) {
  const TrainedFiles trained = find_trained(run);
  if (!task.empty()) require_task(trained, run, task);
  return trained.model.task();
}

void run_info_toml(const InfoOptions& options) {
  ResolvedModel model = resolve_model(options.model, options.set);
  apply_sizes(model.config, {options.image, options.classes, options.vocabulary});
  fmt::print("{}", dump_model_config(model.config));
}

}  // namespace rondo::cli
