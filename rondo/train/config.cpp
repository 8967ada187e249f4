// Reading and dumping an experiment, and the learning-rate schedules.
#include "rondo/train/config.h"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

bool is_translation(const RunConfig& config) {
  return std::string_view(config.model.task()) == "translation";
}

}  // namespace

RunConfig read_run_config(const ConfigTable& table) {
  table.require_known("", {"model", "data", "train", "optimizer", "schedule"});
  RunConfig config;
  config.model = read_model_config(table);
  is_translation(config) ? read_config(table, "data", config.pairs)
                         : read_config(table, "data", config.data);
  read_config(table, "train", config.train);
  read_config(table, "optimizer", config.optimizer);
  read_config(table, "schedule", config.schedule);
  return config;
}

std::string dump_run_config(const RunConfig& config) {
  const std::string data =
      is_translation(config) ? dump_config(config.pairs, "data") : dump_config(config.data, "data");
  return dump_model_config(config.model) + "\n" + data + "\n" + dump_config(config.train, "train") +
         "\n" + dump_config(config.optimizer, "optimizer") + "\n" +
         dump_config(config.schedule, "schedule");
}

std::vector<FieldHelp> run_config_help(const std::string& section, const std::string& task) {
  if (section == "train") return config_help(TrainConfig());
  if (section == "optimizer") return config_help(OptimizerConfig());
  if (section == "schedule") return config_help(ScheduleConfig());
  return task == "translation" ? config_help(PairConfig()) : config_help(TextConfig());
}

double learning_rate(const ScheduleConfig& s, int64_t step, int64_t steps) {
  const auto t = static_cast<double>(step);
  const auto warmup = static_cast<double>(std::max<int64_t>(s.warmup, 1));
  if (s.kind == "rsqrt") return s.rate * std::min(t / warmup, 1.0) / std::sqrt(std::max(t, warmup));
  if (step < s.warmup) return s.rate * t / warmup;
  if (s.kind == "constant") return s.rate;
  if (s.kind == "inverse-sqrt") return s.rate * std::sqrt(warmup / std::max(t, warmup));
  const auto rest = static_cast<double>(std::max<int64_t>(1, steps - s.warmup));
  const double done = std::min(1.0, static_cast<double>(step - s.warmup) / rest);
  const double share = s.kind == "linear" ? 1.0 - done : 0.5 * (1.0 + std::cos(M_PI * done));
  return s.final_rate + (s.rate - s.final_rate) * share;
}

}  // namespace rondo
