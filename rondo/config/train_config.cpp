// Reading and dumping an experiment, and the learning-rate schedules.
#include "rondo/config/train_config.h"

#include <algorithm>
#include <cmath>

#include "rondo/config/data_paths.h"

namespace rondo {
namespace {

bool is_task(const RunConfig& config, std::string_view task) { return config.model.task() == task; }

}  // namespace

std::vector<std::string> run_config_sections(const std::string& task) {
  std::vector<std::string> sections = {"model", "data", "train", "optimizer", "schedule"};
  if (task == "image") sections.insert(sections.begin() + 2, {"augment", "distill"});
  return sections;
}

RunConfig read_run_config(const ConfigTable& table) {
  RunConfig config;
  config.model = read_model_config(table);
  table.require_known("", run_config_sections(config.model.task()));
  if (is_task(config, "lm")) read_config(table, "data", config.data);
  if (is_task(config, "translation")) read_config(table, "data", config.pairs);
  if (is_task(config, "image")) {
    read_config(table, "data", config.images);
    read_config(table, "augment", config.augment);
    read_config(table, "distill", config.distill);
    check_augment(config.augment, table.where("augment"));
  }
  read_config(table, "train", config.train);
  read_config(table, "optimizer", config.optimizer);
  read_config(table, "schedule", config.schedule);
  expand_homes(config);
  return config;
}

std::string dump_run_config(const RunConfig& config) {
  std::string text = dump_model_config(config.model) + "\n";
  if (is_task(config, "lm")) text += dump_config(config.data, "data") + "\n";
  if (is_task(config, "translation")) text += dump_config(config.pairs, "data") + "\n";
  if (is_task(config, "image")) {
    text += dump_config(config.images, "data") + "\n" + dump_config(config.augment, "augment") +
            "\n" + dump_config(config.distill, "distill") + "\n";
  }
  return text + dump_config(config.train, "train") + "\n" +
         dump_config(config.optimizer, "optimizer") + "\n" +
         dump_config(config.schedule, "schedule");
}

std::vector<FieldHelp> run_config_help(const std::string& section, const std::string& task) {
  if (section == "train") return config_help(TrainConfig());
  if (section == "optimizer") return config_help(OptimizerConfig());
  if (section == "schedule") return config_help(ScheduleConfig());
  if (section == "augment") return config_help(AugmentConfig());
  if (section == "distill") return config_help(DistillConfig());
  if (task == "image") return config_help(ImageDataConfig());
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
