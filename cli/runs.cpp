// rondo new, rondo runs, and rondo info for runs and exported models.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/exported_model.h"
#include "rondo/config/trained_files.h"
#include "rondo/project/new_recipe.h"
#include "rondo/project/runs.h"

namespace rondo::cli {
namespace {

constexpr int64_t kMaxExportConfigBytes = int64_t{1} << 22;

// A value of config.json as text; one of an unexpected type as JSON.
std::string exported_text(const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return with_commas(value.get<int64_t>());
  if (key == "languages" && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return fmt::format("{} to {}", value[0].get<std::string>(), value[1].get<std::string>());
  }
  const auto has = [&](const char* name, bool (nlohmann::json::*is)() const noexcept) {
    return value.contains(name) && (value.at(name).*is)();
  };
  if (key == "score" && has("metric", &nlohmann::json::is_string) &&
      has("value", &nlohmann::json::is_number) && has("step", &nlohmann::json::is_number_integer)) {
    const RunScore score{value.at("metric"), value.at("value"), value.at("step")};
    return fmt::format("{} at step {}", run_score_text(score), with_commas(score.step));
  }
  return value.dump();
}

void print_exported(const InfoOptions& options) {
  const std::string file = options.model + "/config.json";
  if (!exists(file)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: has no config.json", options.model),
                "create exported folders with 'rondo export'");
  }
  const auto json = nlohmann::json::parse(read_text_file(file, kMaxExportConfigBytes), nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: expected a JSON object", file),
                "export the model again");
  }
  if (options.json) return fmt::print("{}\n", json.dump(2));
  fmt::print("{}\n\n", options.model);
  for (const char* key : {"task", "kind", "parameters", "precision", "step", "data", "languages",
                          "tokenizer", "recipe", "score", "commit"}) {
    const auto found = json.find(key);
    if (found == json.end() || *found == nlohmann::json("")) continue;
    fmt::print("{:<14}{}\n", key, exported_text(key, *found));
  }
  fmt::print("\n{:<14}{}\n", "use", use_command(options.model, json.value("task", "lm")));
  fmt::print("{:<14}rondo info {}\n", "cost", exported_model_path(options.model));
}

}  // namespace

bool is_described_folder(const std::string& path) {
  return std::filesystem::is_directory(path) &&
         (is_run_folder(path) || exists(exported_model_path(path)));
}

void run_info_run(const InfoOptions& options) {
  if (options.toml || !options.set.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: --toml and --set do not apply to the folder of a trained model",
                            options.model),
                fmt::format("use its configuration: rondo info {}",
                            is_run_folder(options.model) ? options.model + "/config.toml"
                                                         : exported_model_path(options.model)));
  }
  if (!is_run_folder(options.model)) return print_exported(options);
  const RunSummary run = summarize_run(options.model);
  if (options.json) {
    fmt::print("{}\n", run_json(run).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", run_text(run));
  }
}

void run_runs(const RunsOptions& options) {
  const std::vector<RunSummary> runs = list_runs(options.folder);
  if (options.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const RunSummary& run : runs) json.push_back(run_json(run));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (runs.empty()) {
    fmt::print("{}: no runs\n", options.folder);
  } else {
    fmt::print("{}", runs_table(runs));
  }
}

void run_new(const NewOptions& options) {
  std::string name = options.name;
  const std::string ending = ".toml";
  if (name.size() > ending.size() &&
      name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
    name.resize(name.size() - ending.size());
  }
  const std::string file = name + ending;
  if (exists(file)) {
    throw Error(ExitCode::usage, fmt::format("{}: already exists", file), "choose another name");
  }
  write_file(file, commented_recipe(name, options.recipe, options.mini));
  fmt::print("{}\n", file);
  fmt::print(stderr, "edit it, then: rondo train {} --set data.train=PATH\n", file);
}

}  // namespace rondo::cli
