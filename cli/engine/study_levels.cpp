// Studies of levels on data: cka, attention-distance, signals.
#include <fmt/format.h>

#include "cli/engine/study_kinds.h"
#include "rondo/base/error.h"
#include "rondo/report/run_curves.h"
#include "rondo/study/attention_reach.h"
#include "rondo/study/level_similarity.h"
#include "rondo/study/signal_sizes.h"

namespace rondo::cli {
namespace {

// Figures of several runs share one unit.
void require_task_of_first(const study::Subject& subject, const std::string& task) {
  if (task.empty() || subject.task == task) return;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected a model for task '{}' like the first, got '{}'",
                          subject.name, task, subject.task),
              "choose models for the same task");
}

}  // namespace

study::StudyReport study_cka(const StudyOptions& options) {
  study::SubjectOptions how = subject_options(options, 3000);
  how.rows = 64;
  const std::vector<std::string> names = short_run_names(options.runs);
  const study::Subject first = study::load_subject(options.runs[0], how);
  const std::string estimator = options.estimator != "auto" ? options.estimator
                                : first.task == "image"     ? "items"
                                                            : "tokens";
  std::vector<study::LevelSimilarity> found;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    if (i == 0 && options.runs.size() > 1) continue;  // the first with each of the others
    const auto a = study::open_batches(first, how);
    const study::Studied left = {first.network.get(), a.get()};
    if (i == 0) {
      found.push_back(study::level_similarity(left, nullptr, study::cka_estimator(estimator)));
    } else {
      const study::Subject other = study::load_subject(options.runs[i], how);
      study::require_same_data(first, other);
      const auto b = study::open_batches(other, how);
      const study::Studied right = {other.network.get(), b.get()};
      found.push_back(study::level_similarity(left, &right, study::cka_estimator(estimator)));
    }
    found.back().a = names[0];
    found.back().b = names[i];
  }
  return study::similarity_report(found, estimator);
}

study::StudyReport study_attention_distance(const StudyOptions& options) {
  const study::SubjectOptions how = subject_options(options, 500);
  const std::vector<std::string> names = short_run_names(options.runs);
  std::vector<study::AttentionReach> found;
  std::string task;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    const study::Subject subject = study::load_subject(options.runs[i], how);
    require_task_of_first(subject, task);
    task = subject.task;
    const auto batches = study::open_batches(subject, how);
    found.push_back(study::attention_reach(*subject.network, *batches,
                                           task == "image" ? image_side(subject.config) : 0));
    found.back().name = names[i];
  }
  return study::reach_report(found);
}

study::StudyReport study_signals(const StudyOptions& options) {
  const study::SubjectOptions how = subject_options(options, 500);
  const std::vector<std::string> names = short_run_names(options.runs);
  std::vector<study::SignalSizes> found;
  for (size_t i = 0; i < options.runs.size(); ++i) {
    const study::Subject subject = study::load_subject(options.runs[i], how);
    const RingConfig ring =
        std::visit([](const auto& network) { return network.depth.ring; }, subject.config.network);
    const auto batches = study::open_batches(subject, how);
    found.push_back(study::signal_sizes(*subject.network, *batches, ring));
    found.back().name = names[i];
  }
  return study::signals_report(found);
}

}  // namespace rondo::cli
