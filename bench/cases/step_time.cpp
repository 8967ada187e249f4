// The step-time column of the Block-Recurrent paper's Table 1: a training step of every row at full
// size, relative to Slide:13L, together with the ratio of multiply-adds.
#include <fmt/format.h>

#include "bench/cases/parts.h"
#include "rondo/config/paper_table.h"
#include "rondo/model/cost.h"

namespace rondo {
namespace {

constexpr const char* kStepTable = "block-recurrent/table1";
constexpr const char* kStepBase = "slide-13l";
constexpr int64_t kStepTokens = 4096;  // a segment of the paper; shorter segments get more rows

// Networks of 150 to 200 million parameters do not fit in memory together: each is built for its
// turn, and only its second step is timed (the first pays for memory).
Timed step_made_for_its_turn(const LanguageModelConfig& config) {
  return [config](int64_t times) {
    OptimizerConfig adafactor;
    adafactor.kind = "adafactor";
    const auto step = language_step(config, kStepTokens / config.time.segment, false, adafactor);
    (*step)();
    return timed([&] { (*step)(); })(times);
  };
}

BenchResult step_times(const BenchOptions& options) {
  const PaperTable table = load_table(kStepTable);
  Race race("step-time", options);
  std::vector<std::pair<std::string, double>> counts;  // label, multiply-adds of a step
  std::string base;
  for (const TableRow& row : table.rows) {
    if (row.step_time.empty() || !row.has(table.columns.front().name)) continue;
    Layers layers = row_layers(table, row, table.columns.front(), /*mini=*/false);
    layers.set = {"data.train=unused"};
    const ModelConfig model = resolve_experiment(layers).config.model;
    const auto& config = std::get<LanguageModelConfig>(model.network);
    const std::string label = fmt::format("{} (paper {})", row.label, row.step_time);
    if (row.name == kStepBase) base = label;
    const auto rows = static_cast<double>(kStepTokens / config.time.segment);
    counts.emplace_back(label, rows * measure_cost(model, config.time.segment).multiply_adds);
    race.ours(label, static_cast<double>(kStepTokens), "tokens", step_made_for_its_turn(config));
  }
  for (const auto& [label, count] : counts) race.cost(label, base, 0);
  BenchResult result = race.run();
  double of_base = 1;
  for (const auto& [label, count] : counts) {
    if (label == base) of_base = count;
  }
  for (const auto& [label, count] : counts) {
    const double ratio = count / of_base;
    result.claims.push_back(
        {label + ": multiply-adds over " + base, {ratio, ratio, ratio}, 0, false, true});
  }
  return result;
}

}  // namespace

void add_step_time_cases(std::vector<BenchCase>& cases) {
  cases.push_back(
      {"step-time",
       "the step-time column of the Block-Recurrent paper's Table 1, at full size (slow)", false,
       step_times, true});
}

}  // namespace rondo
