// Loads trained networks and their data.
#include "rondo/study/subject.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/data/pair_batches.h"
#include "rondo/data/segments.h"
#include "rondo/image/pipeline.h"
#include "rondo/infer/load.h"
#include "rondo/train/image_task.h"
#include "rondo/train/language_score.h"
#include "rondo/train/translation_task.h"

namespace rondo::study {
namespace {

constexpr uint64_t kOrderSeed = 1;  // the same pairs, in the same order, for every network

// The first `count` rows of a batch.
void keep_rows(Batch& batch, int64_t count) {
  for (auto& [name, tensor] : batch.inputs) tensor = tensor.narrow(0, 0, count);
  for (auto& [name, tensor] : batch.real) tensor = tensor.narrow(0, 0, count);
  batch.labels = batch.labels.narrow(0, 0, count);
  batch.rows = count;
}

// Ends after `items` items.
class Limited : public Batches {
 public:
  Limited(std::unique_ptr<Batches> all, int64_t items) : all_(std::move(all)), left_(items) {}
  bool next(Batch& out) override {
    if (left_ <= 0 || !all_->next(out)) return false;
    if (out.rows > left_ && out.inputs.count("reset") != 0) return false;  // rows share a state
    if (out.rows > left_) keep_rows(out, left_);
    left_ -= out.rows;
    return true;
  }

 private:
  std::unique_ptr<Batches> all_;
  int64_t left_;
};

class ImageBatches : public Batches {
 public:
  ImageBatches(const Subject& s, const std::string& source, const SubjectOptions& options)
      : images_(open_labeled_images(source, "data", image_classes(s.config), nullptr)) {
    LoaderOptions how;
    how.rows = options.rows;
    how.side = image_side(s.config);
    how.training = false;
    loader_ = std::make_unique<ImageLoader>(*images_, s.augment, how);
  }
  bool next(Batch& out) override {
    do {
      if (!loader_->next(batch_)) return false;
    } while (batch_.rows == 0);
    out = {};
    out.rows = batch_.rows;
    out.inputs["images"] =
        at::from_blob(batch_.pixels.data(), {batch_.rows, 3, batch_.side, batch_.side}, at::kFloat)
            .clone();
    out.labels = at::tensor(batch_.labels, at::kLong);
    return true;
  }

 private:
  std::unique_ptr<ImageSet> images_;
  std::unique_ptr<ImageLoader> loader_;
  ImageBatch batch_;
};

class SentenceBatches : public Batches {
 public:
  SentenceBatches(const Subject& s, const std::string& source, const SubjectOptions& options)
      : corpus_(open(s, source, options)), batches_(corpus_, how(s, options)) {}
  bool next(Batch& out) override {
    if (!batches_.next(batch_)) return false;
    const PairTensors t(batch_);
    out = {};
    out.rows = batch_.rows;
    out.inputs = {{"source", t.source}, {"target", t.target}};
    out.labels = t.labels;
    out.real["encoder"] = t.source.ne(padding_);
    out.real["decoder"] = t.labels.ge(0);
    return true;
  }

 private:
  static ParallelCorpus open(const Subject& s, const std::string& source,
                             const SubjectOptions& options) {
    const PairConfig data = s.run.has_value() ? s.run->pairs : PairConfig();
    ParallelOptions o;
    o.files = find_parallel(source, data.source, data.target);
    o.cache_folder = options.cache_folder;
    o.max_tokens = data.max_tokens;
    o.cut = data.cut;
    return ParallelCorpus::open(o, *s.tokenizers.source, *s.tokenizers.target);
  }
  PairBatchOptions how(const Subject& s, const SubjectOptions& options) {
    PairBatchOptions o;
    o.tokens = options.tokens;
    o.seed = kOrderSeed;
    o.endless = false;
    o.use_special_tokens(s.tokenizers.source->special_tokens(),
                         s.tokenizers.target->special_tokens());
    padding_ = o.source_padding;
    return o;
  }

  int64_t padding_ = 0;
  ParallelCorpus corpus_;
  PairBatches batches_;
  PairBatch batch_;
};

class DocumentBatches : public Batches {
 public:
  DocumentBatches(const Subject& s, const std::string& source, const SubjectOptions& options)
      : documents_(Documents::open({source, options.cache_folder}, *s.tokenizers.source)),
        reader_(documents_, how(s, options)) {}
  bool next(Batch& out) override {
    if (!reader_.next(batch_)) return false;
    const SegmentTensors t(batch_);
    out = {};
    out.rows = batch_.rows;
    out.inputs = {{"tokens", t.tokens}, {"reset", t.reset}};
    out.labels = t.labels;
    out.real["stack"] = t.labels.ge(0);
    return true;
  }

 private:
  SegmentOptions how(const Subject& s, const SubjectOptions& options) const {
    SegmentOptions o;
    // The state has a fixed number of rows: a batch cannot be truncated.
    o.rows = std::min(options.rows, documents_.count());
    if (options.items > 0) o.rows = std::min(o.rows, options.items);
    o.length = std::get<LanguageModelConfig>(s.config.network).time.segment;
    o.shuffle = false;
    o.endless = false;
    o.padding = s.tokenizers.source->special_tokens().padding;
    return o;
  }

  Documents documents_;
  SegmentReader reader_;
  SegmentBatch batch_;
};

}  // namespace

NamedTensors Reader::forward(const Batch& batch, const Scope& scope) {
  const at::NoGradGuard no_grad;
  if (batch.inputs.count("reset") == 0) state_ = State();
  return network_.forward(batch.inputs, state_, scope);
}

Subject load_subject(const std::string& given, const SubjectOptions& options) {
  const TrainedFiles files = find_trained(given);
  Subject s;
  s.name = given;
  s.task = files.model.task();
  s.config = files.model;
  s.run = files.run;
  if (s.task == "lm") {
    const auto trained = load_language_model(given, options.tokenizer, options.verify);
    s.network = trained.model;
    s.tokenizers = {trained.tokenizer, trained.tokenizer};
  } else if (s.task == "translation") {
    const auto trained = load_translation_model(given, options.tokenizer, options.verify);
    s.network = trained.model;
    s.tokenizers = trained.tokenizers;
  } else {
    ImageModel model = load_image_model(given, 0, options.verify);
    s.network = model.network;
    s.augment = model.augment;
    s.classes = std::move(model.names);
  }
  return s;
}

std::unique_ptr<Batches> open_batches(const Subject& subject, const SubjectOptions& options) {
  const std::string source = options.data.empty()
                                 ? run_data(subject.run, subject.name, subject.task, options.split)
                                 : options.data;
  std::unique_ptr<Batches> batches;
  if (subject.task == "image") {
    batches = std::make_unique<ImageBatches>(subject, source, options);
  } else if (subject.task == "translation") {
    batches = std::make_unique<SentenceBatches>(subject, source, options);
  } else {
    batches = std::make_unique<DocumentBatches>(subject, source, options);
  }
  if (options.items <= 0) return batches;
  return std::make_unique<Limited>(std::move(batches), options.items);
}

void require_same_data(const Subject& a, const Subject& b) {
  if (a.task != b.task) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a model of the task '{}' as {}, got '{}'", b.name, a.task,
                            a.name, b.task),
                "compare models for the same data");
  }
  if (a.task == "image") return;
  for (const auto side : {&PairTokenizers::source, &PairTokenizers::target}) {
    if ((a.tokenizers.*side)->fingerprint() == (b.tokenizers.*side)->fingerprint()) continue;
    throw Error(ExitCode::bad_input,
                fmt::format("{}: its vocabulary differs from that of {}: their tokens do not match",
                            b.name, a.name),
                "compare models trained with the same tokenizer");
  }
}

std::vector<LevelGroup> level_groups(const Network& network) {
  std::vector<LevelGroup> groups;
  const auto stacks = network.stacks();
  const bool apart = stacks.count("encoder") != 0;
  for (const char* name : {"encoder", "decoder"}) {
    if (apart) groups.push_back({name, {}, {}, {}});
  }
  if (!apart) groups.push_back({"levels", {}, {}, {}});
  for (const auto& [name, stack] : stacks) {
    LevelGroup& group = apart && name == "decoder" ? groups[1] : groups[0];
    const bool staged = name.rfind("stage.", 0) == 0;
    for (int64_t i = 0; i < stack->plan().size(); ++i) {
      group.scopes.push_back(fmt::format("{}.level.{}", name, i));
      group.stacks.push_back(name);
      group.labels.push_back(staged ? fmt::format("{}.{}", std::stoll(name.substr(6)) + 1, i + 1)
                                    : std::to_string(i + 1));
    }
  }
  return groups;
}

}  // namespace rondo::study
