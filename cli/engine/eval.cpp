// rondo eval: dispatches by task.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/eval_tasks.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/config/trained_files.h"

namespace rondo::cli {

std::string test_source(const EvalOptions& options) {
  if (!options.data.empty()) return options.data;
  const TrainedFiles files = find_trained(options.run);
  return run_data(files.run, options.run, files.model.task(), options.split);
}

nlohmann::json metrics_json(const TestItems& items) {
  nlohmann::json json;
  for (const std::string& metric : metrics_of_task(items.task)) {
    const Interval interval = score_interval(metric, items);
    json[metric] = {
        {"score", test_score(metric, items)}, {"low", interval.low}, {"high", interval.high}};
  }
  return json;
}

std::string interval_text(const std::string& metric, const TestItems& items) {
  const Interval interval = score_interval(metric, items);
  const int digits = metric == "bits_per_token" || metric == "bits_per_byte" ? 4 : 2;
  return fmt::format("  (95 %: {:.{}f} to {:.{}f})", interval.low, digits, interval.high, digits);
}

void run_eval(const EvalOptions& options) {
  start_engine(options.compute);
  const std::string task = rondo::find_trained(options.run).model.task();
  const rondo::TestItems items = task == "image"         ? evaluate_images(options)
                                 : task == "translation" ? evaluate_translation(options)
                                                         : evaluate_language(options);
  if (!options.items.empty() && !options.agreement) items.save(options.items);
}

}  // namespace rondo::cli
