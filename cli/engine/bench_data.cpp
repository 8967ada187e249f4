// Times loading a training configuration's data alone and training on it, in turns.
#include "cli/engine/bench_data.h"

#include <fmt/format.h>

#include "bench/cases/parts.h"
#include "cli/engine/bench_report.h"
#include "cli/engine/session.h"
#include "rondo/config/paper_table.h"
#include "rondo/image/pipeline.h"
#include "rondo/train/image_task.h"
#include "rondo/train/language_task.h"
#include "rondo/train/translation_task.h"

namespace rondo::cli {
namespace {

constexpr int64_t kImageBatches = 8;

// A task, and a function that loads its batches without the model.
struct DataSource {
  std::shared_ptr<Task> task;
  std::function<void()> read;
  int64_t batches = 1;  // per read()
};

DataSource language_source(const RunConfig& config, const std::string& cache) {
  const auto task = std::make_shared<LanguageTask>(config, cache);
  SegmentOptions o;
  o.rows = config.train.batch;
  o.length = std::get<LanguageModelConfig>(config.model.network).time.segment;
  const auto reader = std::make_shared<SegmentReader>(task->documents(), o);
  const auto batch = std::make_shared<SegmentBatch>();
  return {task, [task, reader, batch] { reader->next(*batch); }};
}

DataSource translation_source(const RunConfig& config, const std::string& cache) {
  const auto task = std::make_shared<TranslationTask>(config, cache);
  PairBatchOptions o;
  o.tokens = config.pairs.batch_tokens;
  o.max_rows = config.train.batch;
  const auto batches = std::make_shared<PairBatches>(task->pairs(), o);
  const auto batch = std::make_shared<PairBatch>();
  return {task, [task, batches, batch] { batches->next(*batch); }};
}

DataSource image_source(const RunConfig& config) {
  const auto task = std::make_shared<ImageTask>(config);
  const std::shared_ptr<ImageSet> images =
      open_labeled_images(config.images.train, "data.train", image_classes(config.model), nullptr);
  LoaderOptions o;
  o.rows = config.train.batch;
  o.side = image_side(config.model);
  o.threads = config.images.threads;
  // Created anew for every sample: a loader that prefetches would take cores from the training
  // steps timed in between.
  const AugmentConfig augment = config.augment;
  return {task,
          [images, augment, o] {
            ImageLoader loader(*images, augment, o);
            ImageBatch batch;
            for (int64_t i = 0; i < kImageBatches; ++i) loader.next(batch);
          },
          kImageBatches};
}

DataSource open_source(const RunConfig& config, const std::string& cache) {
  const std::string task = config.model.task();
  if (task == "lm") return language_source(config, cache);
  if (task == "translation") return translation_source(config, cache);
  return image_source(config);
}

// Interprets the ratio of the two rates.
std::string data_verdict(const BenchClaim& claim) {
  const double share = 100.0 / claim.value.median;
  return fmt::format(
      "{}: loading and preparing a batch takes {:.1f} % of the time of a training step",
      share < 100.0 ? "data loading keeps up" : "the model waits for data", share);
}

}  // namespace

void bench_data(const BenchOptions& options) {
  const RunConfig config = find_experiment({options.data, options.mini, {}, options.set}).config;
  const MachineDescription machine = describe_machine();
  ComputeOptions compute = options.compute;
  if (compute.threads == 0) compute.threads = config.train.threads;
  start_engine(compute);
  const DataSource source = open_source(config, cache_folder(options.cache));
  const auto network = std::shared_ptr<Network>(source.task, &source.task->network());
  const auto loss = [task = source.task] { return task->next_loss(); };
  const auto step = std::make_shared<TrainingStep>(network, loss, config.train.precision == "bf16",
                                                   config.optimizer);
  (*step)();  // some tasks know their batch size only after a step
  const double units = source.task->units_per_batch();

  rondo::BenchOptions settings;
  settings.measure.rounds = options.rounds;
  Race race("data", settings);
  race.ours("data alone", units * static_cast<double>(source.batches), source.task->unit(),
            source.read);
  race.ours("training", units, source.task->unit(), [step] { (*step)(); });
  race.faster("data alone", "training", 1.0);
  BenchResult result = race.run();
  result.notes.push_back(data_verdict(result.claims.front()));
  const int64_t threads = at::get_num_threads();
  if (options.json) {
    const nlohmann::json whole = {{"machine", to_json(machine, threads)},
                                  {"cases", nlohmann::json::array({to_json(result)})}};
    fmt::print("{}\n", whole.dump(2));
    return;
  }
  const BenchCase about = {"data", options.data, false, nullptr};
  fmt::print("{}{}", describe(machine, threads), describe(about, result));
}

}  // namespace rondo::cli
