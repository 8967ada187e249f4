// rondo export: a trained model as a self-contained folder.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/exported_model.h"
#include "rondo/config/trained_files.h"
#include "rondo/model/network.h"
#include "rondo/project/model_card.h"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxExportedTokenizerBytes = int64_t{64} << 20;

// Writes files to a temporary folder next to the target, which commit() renames into place.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(trimmed(path)) {
    std::error_code error;
    if (fs::exists(path_, error) && !(fs::is_directory(path_) && fs::is_empty(path_))) {
      throw Error(ExitCode::usage, fmt::format("{}: already exists", path_),
                  "choose a folder that does not exist, or an empty one");
    }
    const fs::path whole = fs::absolute(path_);
    temporary_ =
        (whole.parent_path() / fmt::format(".{}.{}.tmp", whole.filename().string(), ::getpid()))
            .string();
    fs::create_directory(temporary_, error);
    if (error) {
      throw Error(ExitCode::io,
                  fmt::format("{}: cannot create the folder: {}", path_, error.message()),
                  "its parent folder must exist and be writable");
    }
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  std::string file(const std::string& name) const { return temporary_ + "/" + name; }
  const std::string& temporary() const { return temporary_; }
  std::string name() const { return fs::absolute(path_).filename().string(); }

  void commit() {
    std::error_code error;
    fs::rename(temporary_, path_, error);
    if (error) {
      throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", path_, error.message()));
    }
    temporary_.clear();
  }

 private:
  static std::string trimmed(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
  }
  std::string path_;
  std::string temporary_;
};

void write_tokenizers(const NewFolder& folder, RunConfig run) {
  for (const auto& [side, field] : tokenizer_fields(run)) {
    if (!is_tokenizer_file(*field)) continue;
    write_file(kept_tokenizer_path(folder.temporary(), side),
               read_tokenizer_model(*field, kMaxExportedTokenizerBytes));
  }
}

// Writes a model file: the weights with the metadata that `find_trained` needs.
void write_model(const NewFolder& folder, const TrainedFiles& trained, const Network& network,
                 const std::string& precision) {
  std::map<std::string, std::string> metadata = {
      {kModelConfigKey, dump_model_config(trained.model)}};
  if (std::string("image") == trained.model.task()) {
    metadata.merge(image_metadata(trained.augment, trained.classes));
  }
  if (trained.run) metadata.merge(experiment_metadata(*trained.run, /*embed=*/false));
  NamedTensors tensors = named_tensors(network);
  if (precision == "bf16") {
    for (auto& [name, tensor] : tensors) {
      if (tensor.is_floating_point()) tensor = tensor.detach().to(at::kBFloat16);
    }
  }
  save_tensors(exported_model_path(folder.temporary()), tensors, metadata, Checksum::xxh3);
}

// The training step of the weights.
int64_t step_of(const TrainedFiles& trained, const std::optional<RunSummary>& run) {
  const int64_t step = checkpoint_step(trained.weights);
  if (step > 0) return step;
  if (!run || trained.weights != best_model_path(run->path)) return 0;
  return run->best ? run->best->step : run->step;
}

}  // namespace

void run_export(const ExportOptions& options) {
  NewFolder folder(options.output);  // first: a bad target fails before any work
  start_engine();
  ExportFacts facts;
  facts.trained = find_trained(options.run);
  const std::shared_ptr<Network> network = build_network(facts.trained.model);
  load_weights(*network, SafetensorsFile::open(facts.trained.weights), verify_as(options.load));
  if (fs::is_directory(options.run) && is_run_folder(options.run)) {
    facts.run = summarize_run(options.run);
  }
  facts.name = folder.name();
  facts.precision = options.precision;
  facts.step = step_of(facts.trained, facts.run);
  for (const auto& parameter : network->parameters()) facts.parameters += parameter.numel();
  write_model(folder, facts.trained, *network, options.precision);
  if (facts.trained.run) write_tokenizers(folder, *facts.trained.run);
  if (!facts.trained.classes.empty()) keep_class_names(folder.temporary(), facts.trained.classes);
  write_file(folder.file("config.json"), export_config(facts).dump(2) + "\n");
  write_file(folder.file("README.md"), model_card(facts));
  folder.commit();
  fmt::print("{}: {}, {} parameters\n", options.output, facts.trained.model.kind(),
             with_commas(facts.parameters));
}

}  // namespace rondo::cli
