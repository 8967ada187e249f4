// The training loop.
#include "rondo/train/trainer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/train/counters.h"
#include "rondo/train/data_parallel.h"
#include "rondo/train/run_notes.h"
#include "rondo/train/sharded_optimizer.h"
#include "rondo/train/stop_signals.h"
#include "rondo/train/weight_metrics.h"

namespace rondo {
namespace {

constexpr int64_t kNonFiniteLimit = 5;
constexpr int64_t kEstimateSteps = 5;
constexpr double kEstimateSeconds = 3;

void load_values(const NamedTensors& from, const NamedTensors& to) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : to) {
    const auto found = from.find(name);
    if (found == from.end() || found->second.sizes() != tensor.sizes()) {
      throw Error(ExitCode::bad_input,
                  fmt::format("checkpoint: tensor '{}' is missing or has the wrong shape", name),
                  "the checkpoint belongs to a different model");
    }
    Tensor target = tensor;
    target.copy_(found->second);
  }
}

class Trainer {
 public:
  // `group` is null for a single process, `folder` for all but the first process of a group.
  Trainer(Task& task, const RunConfig& config, RunFolder* folder, ProcessGroup* group)
      : task_(task),
        config_(config),
        folder_(folder),
        group_(group, task.network(), config.train),
        optimizer_(config.optimizer, task.network(), group, config.train.shard_optimizer),
        average_(first_average(task.network(), config.train)) {
    prepare_network(task.network(), config.train);
  }

  // Resumes from the newest checkpoint, or starts. The folder is changed only after everything has
  // been read.
  void resume() {
    const auto found = group_.share(folder_ ? folder_->checkpoints().newest() : std::nullopt);
    std::vector<ConfigChange> changes;
    if (found.has_value()) changes = restore(found->checkpoint, found->step);
    group_.require_same_weights();
    if (folder_ == nullptr) return;
    folder_->begin({counters_.step, counters_.evaluation_due}, changes);
    task_.keep_files(folder_->path());
    if (!found.has_value()) return;
    log_info("continuing from step {}", with_commas(counters_.step));
    const std::string rates = continued_rates(config_, counters_.step, folder_->steps_before());
    if (!rates.empty()) log_info("{}", rates);
  }

  int run() {
    ProgressOptions shown;
    shown.initial = counters_.step;
    if (!group_.is_first()) shown.sink = [](std::string_view) {};
    Progress progress("train", config_.train.steps, shown);
    first_step_ = counters_.step;
    started_ = std::chrono::steady_clock::now();
    bool leaves = false;
    if (counters_.evaluation_due && is_evaluated(counters_.step)) {
      save_due_ = true;
      finish_step();
      leaves = is_leaving();
    }
    while (!leaves && counters_.step < config_.train.steps && !out_of_patience()) {
      step(progress);
      finish_step();
      leaves = is_leaving();
    }
    if (moved_) throw moved_folder();
    if (requests().moved) throw Error(ExitCode::group, "rank 0 ended: the run folder was moved");
    if (leaves) {
      const std::string place = saved_step_ == counters_.step ? "from here"
                                : saved_step_ == 0            ? "from the beginning"
                                                   : fmt::format("from step {}", saved_step_);
      if (folder_ != nullptr) {
        log_info("stopped by a signal at step {}; 'rondo train {}' continues {}", counters_.step,
                 folder_->path(), place);
      }
      return stop_code();
    }
    progress.finish();
    return 0;
  }

 private:
  double seconds() const {
    const auto now = std::chrono::steady_clock::now();
    return counters_.seconds + std::chrono::duration<double>(now - started_).count();
  }

  std::vector<ConfigChange> restore(const Checkpoint& c, int64_t step) {
    const std::string source =
        folder_ != nullptr ? folder_->checkpoints().path(step) : "checkpoint";
    counters_ = Counters::parse(c.entry("counters"), source);
    load_values(c.below("weight."), named_tensors(task_.network()));
    load_values(c.below("average."), average_);
    optimizer_.load(c.below("moment."));
    std::vector<ConfigChange> changes = restore_place(c);
    saved_step_ = counters_.step;
    logged_step_ = counters_.step;
    logged_seconds_ = counters_.seconds;
    note_change("threads", c.entry("threads"), std::to_string(at::get_num_threads()), changes);
    return changes;
  }

  // The data position and the rows of this process, also if the number of processes, and with it
  // the rows, has changed.
  std::vector<ConfigChange> restore_place(const Checkpoint& c) {
    std::vector<ConfigChange> changes;
    const auto [rank, size] = group_.shard();
    const std::string before = c.entry("processes").empty() ? "1" : c.entry("processes");
    note_change("processes", before, std::to_string(size), changes);
    NamedTensors carried = c.below("carried.");
    if (size > 1 || !changes.empty()) {
      carried = rows_of(carried, rank * config_.train.batch, config_.train.batch);
    }
    task_.restore(c.entry("position"), carried, /*other_rows=*/!changes.empty());
    return changes;
  }

  void note_change(const char* what, const std::string& before, const std::string& now,
                   std::vector<ConfigChange>& changes) const {
    if (before.empty() || before == now) return;
    if (group_.is_first()) {
      log_warn(
          "continuing with {} {} where the run had {}: sums are rounded in a different order, so "
          "results may not be bitwise equal to those of an uninterrupted run",
          now, what, before);
    }
    changes.push_back({what, before, now});
  }

  void save() {
    signals_.take_save_request();
    require_finite(named_tensors(task_.network()));
    require_finite(average_);
    Checkpoint c;
    c.add("weight.", named_tensors(task_.network()));
    c.add("average.", average_);
    c.add("moment.", optimizer_.gather());
    c.add("carried.", group_.gather_rows(task_.carried()));
    Counters counters = counters_;
    counters.seconds = seconds();
    c.metadata[kModelConfigKey] = dump_model_config(config_.model);
    c.metadata["counters"] = counters.dump();
    c.metadata["position"] = task_.position();
    c.metadata["threads"] = std::to_string(at::get_num_threads());
    if (!group_.is_alone()) c.metadata["processes"] = std::to_string(group_.shard().size);
    group_.require_same_weights();
    look_for_folder();
    if (folder_ != nullptr) folder_->checkpoints().save(counters_.step, c, config_.train.keep);
    group_.wait_for_first();
    requests_.save = false;
    saved_step_ = counters_.step;
    save_due_ = false;
  }

  // Non-finite weights never recover: checkpoints must be usable.
  void require_finite(const NamedTensors& tensors) const {
    for (const auto& [name, tensor] : tensors) {
      if (!tensor.is_floating_point() || at::isfinite(tensor).all().item<bool>()) continue;
      throw Error(ExitCode::diverged,
                  fmt::format("training diverged: at step {} weights are not finite ('{}')",
                              counters_.step, name),
                  divergence_advice(config_, saved_step_));
    }
  }

  // One optimizer step: gradients of `accumulate` batches, scaled to their mean, clipped, applied.
  void step(Progress& progress) {
    const int64_t number = ++counters_.step;
    const StepLoss mine =
        compute_gradients(task_, config_.train, number, group_.shard().rank, group_.sender());
    requests_ = own_requests();
    const auto [sum, count] = group_.reduce(mine, requests_);
    const double mean = sum / static_cast<double>(std::max<int64_t>(count, 1));
    const auto [norm, factor] = scale_of_gradients(task_.network(), config_.train.clip, count);
    const double rate = learning_rate(config_.schedule, number, config_.train.steps);
    if (std::isfinite(mean) && std::isfinite(norm)) {
      counters_.in_a_row = 0;
      optimizer_.step(number, rate, factor, group_.gradients());
      update_average(average_, task_.network(), config_.train.ema);
    } else {
      skip(mean, norm);
    }
    counters_.evaluation_due = is_evaluated(number);
    report(progress, mean, norm, rate);
  }

  void skip(double mean, double norm) {
    ++counters_.skipped;
    ++counters_.in_a_row;
    if (group_.is_first()) {
      log_warn("step {}: loss {} with gradient norm {} is not finite; skipped ({} in a row)",
               counters_.step, mean, norm, counters_.in_a_row);
    }
    if (counters_.in_a_row < kNonFiniteLimit) return;
    throw Error(
        ExitCode::diverged,
        fmt::format("training diverged: {} losses in a row were not finite", kNonFiniteLimit),
        divergence_advice(config_, saved_step_));
  }

  void report(Progress& progress, double loss, double norm, double rate) {
    smoothed_.add(loss);
    progress.update(counters_.step, fmt::format("loss {:.4f}", smoothed_.value()));
    say_estimate();
    const bool probes =
        config_.train.probe_every > 0 && counters_.step % config_.train.probe_every == 0;
    const bool logs = counters_.step % config_.train.log_every == 0 || counters_.step == 1;
    if ((!probes && !logs) || folder_ == nullptr) return;
    const double elapsed = seconds();
    const double steps = static_cast<double>(counters_.step - logged_step_);
    Metrics metrics = {{"loss", loss},
                       {"gradient_norm", norm},
                       {"rate", rate},
                       {"skipped", static_cast<double>(counters_.skipped)},
                       {"seconds", elapsed}};
    const double units = steps * task_.units_per_batch() *
                         static_cast<double>(config_.train.accumulate * group_.shard().size);
    if (const double passed = elapsed - logged_seconds_; passed > 0) {
      metrics[std::string(task_.unit()) + "_per_second"] = units / passed;
      if (!group_.is_alone()) {
        metrics["reduce_share"] = (group_.seconds() - logged_reduce_seconds_) / passed;
      }
    }
    if (probes || counters_.step == 1) metrics.merge(weight_metrics(task_.network()));
    if (probes) metrics.merge(task_.probe());
    if (probes) task_.network().train();
    logged_step_ = counters_.step;
    logged_seconds_ = seconds();
    logged_reduce_seconds_ = group_.seconds();
    look_for_folder();
    folder_->log(counters_.step, metrics);
  }
  void say_estimate() {
    const int64_t done = counters_.step - first_step_;
    const double passed = seconds() - counters_.seconds;
    if (estimated_ || done < kEstimateSteps || passed < kEstimateSeconds) return;
    estimated_ = true;
    const int64_t left = config_.train.steps - counters_.step;
    if (left < kEstimateSteps) return;
    log_info("{} for the remaining {}, not counting evaluations",
             about_time(passed / static_cast<double>(done) * static_cast<double>(left)),
             counted(left, "step"));
  }
  bool is_last() const { return counters_.step == config_.train.steps; }
  bool is_evaluated(int64_t step) const {
    const int64_t every = config_.train.eval_every;
    return step == config_.train.steps || (every > 0 && step % every == 0);
  }
  StepRequests own_requests() const {
    return {signals_.stop_code(), signals_.save_requested(), moved_};
  }
  // Current requests: of a single process, from signals received so far; of a group, as agreed by
  // all processes.
  StepRequests requests() const { return group_.is_alone() ? own_requests() : requests_; }
  int stop_code() const { return requests().stop_code; }
  bool is_leaving() const { return stop_code() != 0 || requests().moved; }
  // After skipped steps the weights may be diverging: earlier checkpoints are kept, unless no step
  // is left.
  bool may_save() const { return counters_.in_a_row == 0 || is_last() || out_of_patience(); }

  // After a step: evaluation, then saving; saving comes first if a request is pending.
  void finish_step() {
    while (counters_.evaluation_due && !evaluate() && !is_leaving()) save();
    save_due_ = save_due_ || is_last() || out_of_patience() || is_leaving() || requests().save ||
                counters_.step % config_.train.save_every == 0;
    if (save_due_ && may_save()) save();
  }

  // Whether an evaluation should be interrupted: to leave, or to save a step not yet saved.
  bool is_wanted() const {
    return is_leaving() || (requests().save && saved_step_ != counters_.step && may_save());
  }

  // Returns whether the evaluation completed. If not, it stays due.
  bool evaluate() {
    const AveragedWeights averaged(task_.network(), average_);
    task_.network().eval();
    bool broken_off = is_wanted();
    if (broken_off) return false;
    const auto evaluation = task_.evaluate([&] {
      requests_ = own_requests();
      group_.agree(requests_);
      return broken_off = broken_off || is_wanted();
    });
    if (broken_off) return false;
    counters_.evaluation_due = false;
    look_for_folder();
    if (!evaluation.has_value()) {
      if (is_last()) save_best();
      return true;
    }
    if (folder_ != nullptr) folder_->log(counters_.step, evaluation->metrics);
    std::string shown;
    for (const auto& [name, value] : evaluation->metrics) {
      shown += fmt::format("{}{} {:.4f}", shown.empty() ? "" : ", ", name, value);
    }
    log_info("step {}: {}", counters_.step, shown);
    if (evaluation->selection < counters_.best) {
      counters_.best = evaluation->selection;
      counters_.since_best = 0;
      save_best();
    } else {
      ++counters_.since_best;
    }
    return true;
  }

  void save_best() {
    require_finite(named_tensors(task_.network()));
    if (folder_ != nullptr) {
      save_model(folder_->best_path(), config_.model, task_.network(), task_.metadata());
    }
    group_.wait_for_first();
  }

  bool out_of_patience() const {
    return config_.train.patience > 0 && counters_.since_best >= config_.train.patience;
  }

  // Called before anything is written: if the folder was renamed, follows it and ends the run after
  // this step, instead of creating another folder under the old name.
  void look_for_folder() {
    if (folder_ == nullptr || folder_->in_place()) return;
    if (!moved_) opened_as_ = folder_->path();
    folder_->follow();
    moved_ = true;
  }

  Error moved_folder() const {
    return Error(ExitCode::io,
                 fmt::format("{}: the run folder was moved to {} during the run; stopped "
                             "at step {}, checkpoint of step {}",
                             opened_as_, folder_->path(), counters_.step, saved_step_),
                 fmt::format("continue there with -o {}", folder_->path()));
  }

  Task& task_;
  const RunConfig& config_;
  RunFolder* folder_;
  DataParallel group_;
  ShardedOptimizer optimizer_;
  NamedTensors average_;
  Counters counters_;
  SmoothedLoss smoothed_;
  int64_t first_step_ = 0;  // of this start
  bool estimated_ = false;
  StopSignals signals_;
  StepRequests requests_;  // of all processes, as last agreed
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  int64_t logged_step_ = 0;
  double logged_seconds_ = 0;
  double logged_reduce_seconds_ = 0;
  int64_t saved_step_ = 0;  // of the newest checkpoint; 0 = none
  bool save_due_ = false;   // requested, but not yet allowed or done
  bool moved_ = false;      // the folder was moved during the run
  std::string opened_as_;   // the folder's original path
};

}  // namespace

int train(Task& task, const RunConfig& config, RunFolder& folder, const RunBegun& begun) {
  Trainer trainer(task, config, &folder, nullptr);
  trainer.resume();
  if (begun) begun(folder.path());
  return trainer.run();
}

int train_in_group(Task& task, const RunConfig& config, RunFolder* folder, ProcessGroup& group,
                   const RunBegun& begun) {
  Trainer trainer(task, config, folder, &group);
  trainer.resume();
  if (begun && folder != nullptr) begun(folder->path());
  return trainer.run();
}

}  // namespace rondo
