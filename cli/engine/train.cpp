// rondo train: an experiment from a TOML file into a run folder.
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/run_record.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/limits.h"
#include "rondo/base/log.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/text.h"
#include "rondo/base/version.h"
#include "rondo/config/data_paths.h"
#include "rondo/config/global_batch.h"
#include "rondo/config/paper_table.h"
#include "rondo/config/trained_files.h"
#include "rondo/data/pair_tokenizers.h"
#include "rondo/data/tokenizer.h"
#include "rondo/model/cost.h"
#include "rondo/nn/precision.h"
#include "rondo/project/runs.h"
#include "rondo/train/checkpoint.h"
#include "rondo/train/device.h"
#include "rondo/train/image_task.h"
#include "rondo/train/language_task.h"
#include "rondo/train/trainer.h"
#include "rondo/train/translation_task.h"

namespace rondo::cli {
namespace {

RunConfig experiment(const TrainOptions& options) {
  RunConfig config =
      find_experiment({options.what.front(), options.mini, options.data, options.set}).config;
  make_paths_absolute(config);
  if (config.train.precision == "bf16" && !nn::cpu_has_bf16()) {
    log_warn(
        "train.precision: this CPU has no bf16 instructions: bf16 is computed in fp32, no faster "
        "than --set train.precision=fp32");
  }
  return config;
}

// Reuses the tokenizers kept in the run folder, wherever the data is now.
void use_kept_tokenizers(RunConfig& config, const std::string& run) {
  for (const auto& [side, field] : tokenizer_fields(config)) {
    const std::string kept = kept_tokenizer_path(run, side);
    const bool gone = parse_tokenizer_request(*field).has_value() || !exists(*field);
    if (is_tokenizer_file(*field) && gone && exists(kept)) *field = kept;
  }
}

// The same experiment with existing tokenizers: those not trained yet are trained now.
RunConfig with_tokenizers(RunConfig config, const std::string& run, const std::string& cache) {
  if (is_run_folder(run)) use_kept_tokenizers(config, run);
  const std::string task = config.model.task();
  if (task == "lm" && !config.data.train.empty()) {
    config.data.tokenizer = tokenizer_file(config.data.tokenizer, {config.data.train}, cache);
  }
  if (task == "translation" && !config.pairs.train.empty()) {
    train_pair_tokenizers(config.pairs, cache);
  }
  return config;
}

std::unique_ptr<Task> make_task(const RunConfig& config, const std::string& cache,
                                ProcessGroup* group = nullptr) {
  training_device(config.train, group);  // checked before data is prepared
  const std::string task = config.model.task();
  if (task == "lm") return std::make_unique<LanguageTask>(config, cache, group);
  if (task == "translation") return std::make_unique<TranslationTask>(config, cache, group);
  return std::make_unique<ImageTask>(config, group);
}

// A checkpoint also holds the moments and average of every weight, and the carried state: rejects
// networks whose checkpoints could not be written.
void check_tensors(Task& task) {
  const auto weights = static_cast<int64_t>(task.network().named_parameters().size());
  const int64_t most = static_cast<int64_t>(kMaxTensorsPerFile) / 5;
  if (weights <= most) return;
  throw Error(ExitCode::bad_input,
              fmt::format("the network has {} weight tensors: expected at most {} for a checkpoint "
                          "to fit in one file",
                          with_commas(weights), with_commas(most)),
              "choose fewer levels (model.depth.levels)");
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

void say_dry_run(const RunConfig& config, Task& task, bool json) {
  const Cost cost = measure_cost(config.model);
  const DryRun measured = dry_run(task, config);
  const double units = task.units_per_batch() * static_cast<double>(config.train.accumulate);
  if (json) {
    const nlohmann::json out = {{"parameters", cost.parameters},
                                {"multiply_adds", cost.multiply_adds},
                                {"steps", config.train.steps},
                                {"peak_bytes", measured.peak_bytes},
                                {"seconds_per_step", measured.seconds_per_step}};
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("parameters        {}\n", with_commas(cost.parameters));
  fmt::print("steps             {}, {} {} each\n", with_commas(config.train.steps),
             with_commas(static_cast<int64_t>(units)), task.unit());
  fmt::print("peak memory       {}, of which tensors {}\n", human_bytes(measured.peak_bytes),
             human_bytes(measured.tensor_bytes));
  fmt::print("time per step     {:.3f} s ({:.0f} {}/s)\n", measured.seconds_per_step,
             units / measured.seconds_per_step, task.unit());
  fmt::print("total time        {} without evaluation\n",
             duration(measured.seconds_per_step * static_cast<double>(config.train.steps)));
}

std::string run_path(const TrainOptions& options) {
  return options.run.empty() ? "runs/" + experiment_stem(options.what.front()) : options.run;
}

// A run with a checkpoint continues from that: the model it was started from may be gone by now.
RunConfig without_start_if_begun(RunConfig config, const std::string& run) {
  if (!CheckpointFolder(run + "/checkpoints").steps().empty()) config.train.start.clear();
  return config;
}

// The task, with its share of a group's batch. If data has moved since the run started, the error
// says how to set the new location.
std::unique_ptr<Task> open_task(const RunConfig& config, const std::string& run,
                                const std::string& cache, ProcessGroup* group) {
  const RunConfig needed = without_start_if_begun(config, run);
  try {
    const int64_t processes = group == nullptr ? 1 : group->size();
    return make_task(share_of_batch(with_tokenizers(needed, run, cache), processes), cache, group);
  } catch (const Error& error) {
    if (error.code() != ExitCode::io || !is_run_folder(run)) throw;
    throw Error(
        ExitCode::io, error.message(),
        fmt::format("if the data was moved, set its location, with the part after '#' if it "
                    "has one: rondo train {} --set data.train=PATH (also data.valid, "
                    "data.test)",
                    run));
  }
}

// Not with fmt::print, which throws if stderr is closed.
void say_next(const std::string& run, const RunConfig& config) {
  std::fputs(fmt::format("next: {}\n", use_command(run, config.model.task())).c_str(), stderr);
}

int train_alone(const TrainOptions& options, const RunConfig& config) {
  start_engine({config.train.threads, options.kernels});
  const std::string cache = cache_folder(options.cache);
  const std::string run = run_path(options);
  // The task first: bad data or a bad model leaves no folder behind.
  const auto task = open_task(config, run, cache, nullptr);
  if (options.dry_run) {
    say_dry_run(share_of_batch(config, 1), *task, options.json);
    return 0;
  }
  check_tensors(*task);
  RunFolder folder(run, config);
  const int exit_code =
      train(*task, share_of_batch(config, 1), folder, [&](const std::string& place) {
        write_run_record(place, config, *task, options.what.front());
      });
  if (exit_code == 0) fmt::print("{}\n", folder.path());
  say_next(folder.path(), config);
  return exit_code;
}

// Rank 0 creates what the others then find in the cache: tokenizers, tokenized data.
std::unique_ptr<Task> make_task_in_turn(const TrainOptions& options, const RunConfig& config,
                                        ProcessGroup& group) {
  const std::string cache = cache_folder(options.cache);
  const auto make = [&] { return open_task(config, run_path(options), cache, &group); };
  std::unique_ptr<Task> task;
  if (group.rank() == 0) task = make();
  group.wait_patiently();
  if (group.rank() > 0) task = make();
  group.wait_patiently();
  group.require_same("training data", "checksum = " + task->data_checksum());
  return task;
}

int train_one_of(const TrainOptions& options, const RunConfig& config, ProcessGroup& group) {
  group.require_same("build",
                     fmt::format("rondo = {}\ncommit = {}\nlibtorch = {}\nkernels = {}\n", kVersion,
                                 build_commit(), TORCH_VERSION, options.kernels));
  RunConfig recipe = config;
  leave_out_folders(recipe);  // data is compared by content
  group.require_same("recipe", dump_run_config(recipe));
  const auto task = make_task_in_turn(options, config, group);
  check_tensors(*task);
  std::optional<RunFolder> folder;
  if (group.rank() == 0) folder.emplace(run_path(options), config);
  const RunConfig own = share_of_batch(config, group.size());
  const int exit_code = train_in_group(
      *task, own, folder ? &*folder : nullptr, group,
      [&](const std::string& run) { write_run_record(run, config, *task, options.what.front()); });
  group.wait_patiently();
  if (exit_code == 0 && folder) fmt::print("{}\n", folder->path());
  if (folder) say_next(folder->path(), config);
  return exit_code;
}

int train_in_place(const TrainOptions& options, const RunConfig& config, const GroupPlace& place) {
  if (options.dry_run) {
    throw Error(ExitCode::usage, "train: --dry-run measures one process",
                "start it without a launcher");
  }
  ProcessGroup group(place);
  if (group.rank() > 0) init_log(-1);  // only rank 0 logs
  try {
    const int64_t cores = std::max<int64_t>(1, usable_cores() / group.local_size());
    start_engine({config.train.threads > 0 ? config.train.threads : cores, options.kernels});
    return train_one_of(options, config, group);
  } catch (const Error& error) {
    if (error.code() != ExitCode::group) group.abort(error.message());
    throw;
  } catch (const std::exception& error) {
    group.abort(error.what());
    throw;
  }
}

}  // namespace

int run_train(const TrainOptions& options) {
  const RunConfig config = experiment(options);
  check_threads(config.train.threads, "train.threads");
  check_threads(config.images.threads, "data.threads");
  const auto place = find_group(
      {options.group_file, options.group_address, options.group_secret, options.group_timeout},
      process_environment());
  return place.has_value() ? train_in_place(options, config, *place) : train_alone(options, config);
}

}  // namespace rondo::cli
