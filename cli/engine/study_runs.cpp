// Studies of texts and of runs: state, coefficients, cost.
#include <fmt/format.h>

#include "cli/engine/session.h"
#include "cli/engine/study_kinds.h"
#include "rondo/base/error.h"
#include "rondo/infer/load.h"
#include "rondo/report/run_curves.h"
#include "rondo/study/coefficients.h"
#include "rondo/study/state_use.h"
#include "rondo/study/trade_off.h"

namespace rondo::cli {

study::StudyReport study_state(const StudyOptions& options) {
  const std::vector<std::string> names = short_run_names(options.runs);
  std::vector<study::StateUse> found;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    const std::string& run = options.runs[i];
    const TrainedLanguageModel trained =
        load_language_model(run, options.tokenizer, verify_as(options.load));
    if (!trained.model->stack().has_states()) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected a model with recurrent states, got one without", run),
                  "choose a model whose [model.time] kind is block-recurrent or feedback");
    }
    const std::optional<RunConfig> config = find_trained(run).run;
    const std::string source =
        options.data.empty() ? run_data(config, run, "lm", options.split) : options.data;
    Documents documents =
        Documents::open({source, cache_folder(options.cache)}, *trained.tokenizer);
    documents.shorten(options.tokens);
    study::StateUseOptions how;
    how.excerpt = options.excerpt;
    found.push_back(study::state_use(*trained.model, documents, trained.tokenizer, how));
    found.back().name = names[i];
  }
  return study::state_report(found);
}

study::StudyReport study_coefficients(const StudyOptions& options) {
  const std::vector<std::string> names = short_run_names(options.runs);
  std::vector<study::RunCoefficients> found;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    found.push_back({names[i], study::read_coefficients(options.runs[i])});
  }
  return study::coefficients_report(found);
}

study::StudyReport study_cost(const StudyOptions& options) {
  const std::vector<std::string> names = short_run_names(options.runs);
  std::vector<study::RunCost> found;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    const TrainedFiles files = find_trained(options.runs[i]);
    const Cost cost = measure_cost(files.model);
    study::RunCost run;
    run.name = names[i];
    run.task = files.model.task();
    run.parameters = static_cast<double>(cost.parameters);
    run.multiply_adds = cost.multiply_adds;
    const LoggedMetric metric = logged_metrics(run.task).front();
    run.metric = metric.title;
    run.score = best_of(read_curve(options.runs[i], metric.key), metric);
    run.sliced = study::sliced_costs(files.model, {1, 2, 3, 4}, {1, 2, 4, 8, 16});
    found.push_back(run);
  }
  return study::cost_report(found);
}

}  // namespace rondo::cli
