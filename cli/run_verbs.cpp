// Command lines of rondo train, new, runs and export. `rondo train` decides here what it was given
// (a recipe, data, a run); the engine gets a recipe or a configuration and everything else as
// --set.
#include "cli/run_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <filesystem>

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/verbs.h"
#include "cli/workers.h"
#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/config/paper_table.h"
#include "rondo/config/trained_files.h"
#include "rondo/project/found_data.h"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_train(const std::string& what, const std::string& advice) {
  throw Error(ExitCode::usage, "train: " + what, advice);
}

// Rejects options that only apply to data, instead of silently ignoring them.
void refuse_data_options(const TrainOptions& options, const char* given) {
  if (!options.recipe.empty()) {
    refuse_train(fmt::format("--recipe is for data, but {} is given", given), "omit it");
  }
  if (!options.tokenizer.empty()) {
    refuse_train(fmt::format("--tokenizer is for data, but {} is given", given),
                 "override a recipe's tokenizer with --set data.tokenizer=bpe:4096");
  }
}

// A run folder: resumed in place with its own configuration.
void continue_run(TrainOptions& options) {
  const std::string run = options.what.front();
  refuse_data_options(options, "a run");
  if (!options.run.empty() && options.run != run) {
    refuse_train(fmt::format("{} is a run, which resumes in its own folder", run),
                 fmt::format("omit -o, or start another run from its weights: --set "
                             "train.start={}",
                             run));
  }
  if (options.mini) refuse_train("--mini cannot be changed when resuming a run", "omit it");
  options.run = run;
  options.what = {run + "/config.toml"};
}

// Whether another process of the same training job logs for this one.
bool is_silent(const TrainOptions& options) {
  const auto place = launched_place();
  return starts_workers(options) || (place.has_value() && place->rank != "0");
}

// A path with a folder or an extension is meant as data; a bare name may be a misspelled recipe.
void refuse_missing(const std::string& given) {
  const fs::path path = given;
  std::error_code ignored;
  if (fs::exists(path, ignored) || path.extension() == ".toml") return;
  if (given.find(':') != std::string::npos) return;  // a row of a table
  if (!path.has_parent_path() && !path.has_extension()) return;
  throw Error(ExitCode::io, fmt::format("{}: no such file or folder", printable(given, PATH_MAX)),
              "to train from data: a text file, a folder of texts, two parallel files, or a folder "
              "of class folders");
}

// Data: the matching recipe, with the settings derived from the data.
void start_from_data(TrainOptions& options) {
  if (options.what.size() == 1) refuse_missing(options.what.front());
  const auto found = find_data({options.what, options.recipe, options.tokenizer});
  if (!found.has_value()) {
    refuse_data_options(options, "a recipe");
    return;
  }
  for (const std::string& note : found->notes) {
    if (!is_silent(options)) log_info("{}", note);
  }
  options.set.insert(options.set.begin(), found->set.begin(), found->set.end());
  if (options.run.empty()) options.run = "runs/" + found->name;
  options.what = {found->recipe};
  options.recipe.clear();
  options.tokenizer.clear();
}

void add_train(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  add_verb(
      app,
      {"train", "train a model from data or a recipe, or resume a run", "rondo train novel.txt"},
      options)
      ->callback([options, &exit_code] {
        std::signal(SIGPIPE, SIG_IGN);  // a run survives a closed output pipe
        const std::vector<std::string> names = recipe_names();
        const bool is_recipe =
            options->what.size() == 1 &&
            std::find(names.begin(), names.end(), options->what.front()) != names.end();
        if (options->what.size() == 1 && is_run_folder(options->what.front())) {
          continue_run(*options);
        } else if (is_recipe) {
          refuse_data_options(*options, "a recipe");
        } else {
          start_from_data(*options);
        }
        const Experiment experiment =
            find_experiment({options->what.front(), options->mini, options->data, options->set});
        if (options->show_config) return fmt::print("{}", explain_experiment(experiment));
        exit_code =
            starts_workers(*options) ? run_workers(*options) : run_engine("train", *options);
      });
}

void add_export(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  add_verb(app,
           {"export", "export a trained model to a self-contained folder",
            "rondo export runs/novel -o novel-model"},
           options)
      ->callback([options, &exit_code] {
        check_trained(options->run, "");
        exit_code = run_engine("export", *options);
      });
}

}  // namespace

void add_run_verbs(CLI::App& app, int& exit_code) {
  add_train(app, exit_code);
  auto make = std::make_shared<NewOptions>();
  add_verb(app, {"new", "write a recipe to edit, with every key explained", "rondo new my-model"},
           make)
      ->callback([make] { run_new(*make); });
  auto runs = std::make_shared<RunsOptions>();
  add_verb(app, {"runs", "list runs: task, step, score, size, status", "rondo runs"}, runs)
      ->callback([runs] { run_runs(*runs); });
  add_export(app, exit_code);
}

}  // namespace rondo::cli
