// The training loop.
#include "rondo/train/trainer.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/random.h"
#include "rondo/kernels/optimizer.h"
#include "rondo/nn/allocator.h"
#include "rondo/nn/gradients.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/precision.h"
#include "rondo/recurrence/stack.h"
#include "rondo/train/optimizer.h"
#include "rondo/train/stop_signals.h"

namespace rondo {
namespace {

constexpr int64_t kNonFiniteLimit = 5;

// Counters that survive a restart.
struct Counters {
  int64_t step = 0;
  int64_t skipped = 0;     // steps whose loss was not finite
  int64_t in_a_row = 0;    // of them, the last ones
  double best = INFINITY;  // selection of the best model so far
  int64_t since_best = 0;  // evaluations since then
  double seconds = 0;      // of training, over all starts

  std::string dump() const {
    // A best of infinity (no evaluation yet) is left out: JSON has no such number.
    nlohmann::json json = {{"step", step},
                           {"skipped", skipped},
                           {"in_a_row", in_a_row},
                           {"since_best", since_best},
                           {"seconds", seconds}};
    if (std::isfinite(best)) json["best"] = best;
    return json.dump();
  }
  static Counters parse(const std::string& text) {
    const auto json = nlohmann::json::parse(text);
    Counters c;
    c.step = json.at("step");
    c.skipped = json.at("skipped");
    c.in_a_row = json.at("in_a_row");
    c.since_best = json.at("since_best");
    c.seconds = json.at("seconds");
    c.best = json.value("best", static_cast<double>(INFINITY));
    return c;
  }
};

// What parts of a network must know of the training around them.
void prepare_network(Network& network, const TrainConfig& config) {
  for (const auto& module : network.modules()) {
    if (auto* stack = dynamic_cast<Stack*>(module.get())) {
      stack->recompute_every(config.recompute_levels);
    }
    if (auto* norm = dynamic_cast<nn::BatchNorm2d*>(module.get())) {
      norm->batches_per_step(config.accumulate);
    }
  }
}

// The running average of the weights as it begins; empty if there is none.
NamedTensors first_average(const Network& network, const TrainConfig& config) {
  NamedTensors average;
  if (config.ema <= 0.0) return average;
  for (const auto& item : network.named_parameters()) {
    average[item.key()] = item.value().detach().clone();
  }
  return average;
}

// Sum and count of the losses of one step's batches, their gradients left in the parameters.
struct StepLoss {
  double sum = 0;
  int64_t count = 0;
};

StepLoss compute_gradients(Task& task, const TrainConfig& config, int64_t number) {
  at::manual_seed(
      counter_draw(static_cast<uint64_t>(config.seed), "step", static_cast<uint64_t>(number)));
  task.network().train();
  for (const auto& item : task.network().named_parameters()) item.value().mutable_grad() = Tensor();
  StepLoss total;
  for (int64_t i = 0; i < config.accumulate; ++i) {
    const nn::MixedPrecision mixed(config.precision == "bf16");
    const nn::GradientsInPlace in_place;
    const LossSum loss = task.next_loss();
    loss.sum.backward();
    const double sum = loss.sum.item<double>();
    if (!std::isfinite(sum)) task.forget_last();  // or its state would poison the batches after it
    total.sum += sum;
    total.count += loss.count;
  }
  return total;
}

class Trainer {
 public:
  Trainer(Task& task, const RunConfig& config, RunFolder& folder)
      : task_(task),
        config_(config),
        folder_(folder),
        optimizer_(make_optimizer(config.optimizer, task.network())),
        average_(first_average(task.network(), config.train)) {
    prepare_network(task.network(), config.train);
  }

  int run() {
    resume();
    ProgressOptions shown;
    shown.initial = counters_.step;
    Progress progress("train", config_.train.steps, shown);
    started_ = std::chrono::steady_clock::now();
    while (counters_.step < config_.train.steps && !out_of_patience()) {
      step(progress);
      const bool last = counters_.step == config_.train.steps;
      const bool enough = evaluate_if_due(last);
      const int stop = signals_.stop_code();
      if (last || enough || stop != 0 || signals_.take_save_request() ||
          counters_.step % config_.train.save_every == 0) {
        save();
      }
      if (stop != 0) {
        log_info("stopped by a signal at step {}; the same command continues from here",
                 counters_.step);
        return stop;
      }
      if (enough) break;
    }
    progress.finish();
    return 0;
  }

 private:
  double seconds() const {
    const auto now = std::chrono::steady_clock::now();
    return counters_.seconds + std::chrono::duration<double>(now - started_).count();
  }

  void resume() {
    const auto found = folder_.checkpoints().newest();
    if (!found.has_value()) {
      folder_.rewind_metrics(0);
      return;
    }
    const Checkpoint& c = found->checkpoint;
    counters_ = Counters::parse(c.facts.at("counters"));
    load_values(c.below("weight."), named_tensors(task_.network()));
    load_values(c.below("average."), average_);
    optimizer_->load(c.below("moment."));
    task_.restore(c.facts.at("position"), c.below("carried."));
    folder_.rewind_metrics(counters_.step);
    logged_step_ = counters_.step;
    logged_seconds_ = counters_.seconds;
    log_info("continuing from step {}", counters_.step);
  }

  static void load_values(const NamedTensors& from, const NamedTensors& to) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : to) {
      const auto found = from.find(name);
      if (found == from.end() || found->second.sizes() != tensor.sizes()) {
        throw Error(ExitCode::bad_input,
                    fmt::format("checkpoint: tensor '{}' is missing or has another shape", name),
                    "the checkpoint belongs to another model");
      }
      Tensor target = tensor;
      target.copy_(found->second);
    }
  }

  void save() {
    Checkpoint c;
    c.add("weight.", named_tensors(task_.network()));
    c.add("average.", average_);
    c.add("moment.", optimizer_->moments());
    c.add("carried.", task_.carried());
    Counters counters = counters_;
    counters.seconds = seconds();
    c.facts["counters"] = counters.dump();
    c.facts["position"] = task_.position();
    folder_.checkpoints().save(counters_.step, c, config_.train.keep);
  }

  // One optimiser step: gradients of `accumulate` batches, scaled to their mean, clipped, applied.
  void step(Progress& progress) {
    const int64_t number = ++counters_.step;
    const auto [sum, count] = compute_gradients(task_, config_.train, number);
    const double mean = sum / static_cast<double>(std::max<int64_t>(count, 1));
    const auto [norm, factor] = scale_of_gradients(count);
    const double rate = learning_rate(config_.schedule, number, config_.train.steps);
    if (std::isfinite(mean) && std::isfinite(norm)) {
      counters_.in_a_row = 0;
      optimizer_->step(number, rate, factor);
      update_average();
    } else {
      skip(mean, norm);
    }
    report(progress, mean, norm, rate);
  }

  // The joint norm of the mean gradient over `count` losses, and what gradients are to be
  // multiplied with so that they are that mean, clipped.
  struct GradientScale {
    double norm = 0;
    double factor = 1;
  };
  GradientScale scale_of_gradients(int64_t count) const {
    const at::NoGradGuard no_grad;
    const bool fused = nn::kernels_in_use() == nn::Kernels::fused;
    std::vector<kernels::Floats> parts;
    double squares = 0;
    for (const auto& item : task_.network().named_parameters()) {
      const Tensor g = item.value().grad();
      if (!g.defined()) continue;
      if (fused && g.is_cpu() && g.scalar_type() == at::kFloat && g.is_contiguous()) {
        parts.push_back({g.data_ptr<float>(), g.numel()});
      } else {
        squares += std::pow(g.norm().item<double>(), 2);
      }
    }
    const double mean = 1.0 / static_cast<double>(std::max<int64_t>(count, 1));
    const double norm = mean * std::sqrt(squares + kernels::sum_of_squares(parts));
    const bool clipped = config_.train.clip > 0.0 && norm > config_.train.clip;
    return {norm, clipped ? mean * config_.train.clip / (norm + 1e-6) : mean};
  }

  void skip(double mean, double norm) {
    ++counters_.skipped;
    ++counters_.in_a_row;
    log_warn("step {}: loss {} with gradient norm {} is not finite; skipped ({} in a row)",
             counters_.step, mean, norm, counters_.in_a_row);
    if (counters_.in_a_row < kNonFiniteLimit) return;
    throw Error(
        ExitCode::diverged,
        fmt::format("training diverged: {} losses in a row were not finite", kNonFiniteLimit),
        "the last good checkpoint is kept; lower schedule.rate, or clip harder");
  }

  void update_average() {
    if (average_.empty()) return;
    const at::NoGradGuard no_grad;
    const double decay = config_.train.ema;
    for (const auto& item : task_.network().named_parameters()) {
      average_.at(item.key()).mul_(decay).add_(item.value(), 1.0 - decay);
    }
  }

  void report(Progress& progress, double loss, double norm, double rate) {
    progress.update(counters_.step, fmt::format("loss {:.4f}", loss));
    const bool probes =
        config_.train.probe_every > 0 && counters_.step % config_.train.probe_every == 0;
    const bool logs = counters_.step % config_.train.log_every == 0 || counters_.step == 1;
    if (!probes && !logs) return;
    const double elapsed = seconds();
    const double steps = static_cast<double>(counters_.step - logged_step_);
    Metrics metrics = {{"loss", loss},
                       {"gradient_norm", norm},
                       {"rate", rate},
                       {"skipped", static_cast<double>(counters_.skipped)},
                       {"seconds", elapsed}};
    const double units =
        steps * static_cast<double>(config_.train.accumulate) * task_.units_per_batch();
    if (elapsed > logged_seconds_) {
      metrics[std::string(task_.unit()) + "_per_second"] = units / (elapsed - logged_seconds_);
    }
    if (probes) {
      for (const auto& [name, value] : task_.probe()) metrics[name] = value;
      task_.network().train();
    }
    logged_step_ = counters_.step;
    logged_seconds_ = seconds();
    folder_.log(counters_.step, metrics);
  }

  // Returns whether patience has run out.
  bool evaluate_if_due(bool last) {
    const int64_t every = config_.train.eval_every;
    if (!last && (every == 0 || counters_.step % every != 0)) return false;
    const AveragedWeights averaged(task_.network(), average_);
    task_.network().eval();
    const auto evaluation = task_.evaluate();
    if (!evaluation.has_value()) {
      if (last) save_best();
      return false;
    }
    folder_.log(counters_.step, evaluation->metrics);
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
    return out_of_patience();
  }

  void save_best() {
    save_model(folder_.best_path(), config_.model, task_.network(), task_.metadata());
  }

  bool out_of_patience() const {
    return config_.train.patience > 0 && counters_.since_best >= config_.train.patience;
  }

  Task& task_;
  const RunConfig& config_;
  RunFolder& folder_;
  std::unique_ptr<Optimizer> optimizer_;
  NamedTensors average_;
  Counters counters_;
  StopSignals signals_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  int64_t logged_step_ = 0;
  double logged_seconds_ = 0;
};

}  // namespace

AveragedWeights::AveragedWeights(Network& network, const NamedTensors& average)
    : network_(network) {
  const at::NoGradGuard no_grad;
  if (average.empty()) return;
  for (const auto& item : network.named_parameters()) {
    Tensor value = item.value();
    kept_[item.key()] = value.detach().clone();
    value.copy_(average.at(item.key()));
  }
}

AveragedWeights::~AveragedWeights() {
  const at::NoGradGuard no_grad;
  for (const auto& item : network_.named_parameters()) {
    const auto found = kept_.find(item.key());
    if (found == kept_.end()) continue;
    Tensor value = item.value();
    value.copy_(found->second);
  }
}

DryRun dry_run(Task& task, const RunConfig& config, int64_t steps) {
  nn::watch_memory();
  prepare_network(task.network(), config.train);
  const auto optimizer = make_optimizer(config.optimizer, task.network());
  const NamedTensors average = first_average(task.network(), config.train);
  std::vector<double> seconds;
  for (int64_t number = 1; number <= steps; ++number) {
    const auto started = std::chrono::steady_clock::now();
    compute_gradients(task, config.train, number);
    optimizer->step(number, 0.0);
    const auto now = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(now - started).count());
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  // The first step pays for memory that later ones reuse: the fastest is the usual one.
  return {*std::min_element(seconds.begin(), seconds.end()), int64_t{usage.ru_maxrss} * 1024,
          static_cast<int64_t>(nn::memory_use().watched)};
}

int train(Task& task, const RunConfig& config, RunFolder& folder) {
  return Trainer(task, config, folder).run();
}

}  // namespace rondo
