// Locating trained models.
#include "rondo/config/trained_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "rondo/base/error.h"
#include "rondo/base/file_kind.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/safetensors.h"
#include "rondo/base/text.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/config/exported_model.h"
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;

bool is_named_model(const std::string& name) {
  return std::any_of(zoo().begin(), zoo().end(),
                     [&](const ZooEntry& entry) { return entry.name == name; });
}

std::string metadata_entry(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

// Class names and image preprocessing, from the run folder or the model file.
void find_image_facts(const std::string& folder, const SafetensorsFile& file,
                      TrainedFiles& trained) {
  if (trained.run.has_value()) {
    trained.augment = trained.run->augment;
  } else if (const std::string text = metadata_entry(file, kAugmentKey); !text.empty()) {
    const ConfigTable table = ConfigTable::from_string(text, trained.weights);
    read_config(table, "augment", trained.augment);
    check_augment(trained.augment, table.where("augment"));
  }
  if (!folder.empty() && exists(kept_classes_path(folder))) {
    trained.classes = read_class_names(kept_classes_path(folder));
  } else if (const std::string text = metadata_entry(file, kClassNamesKey); !text.empty()) {
    trained.classes = parse_class_names(text, trained.weights + " (classes)");
  }
}

// The run that contains a checkpoint or best model; "" if there is none.
std::string run_of_file(const std::string& file) {
  const std::filesystem::path path(file);
  std::filesystem::path folder = path.parent_path();
  if (folder.filename() == "checkpoints") {
    folder = folder.parent_path();
  } else if (path.filename() != "best.safetensors") {
    return "";
  }
  const std::string run = folder.empty() ? "." : folder.string();
  return is_run_folder(run) ? run : "";
}

// The experiment that the weights came from, if known.
std::optional<RunConfig> find_experiment_of(const std::string& folder,
                                            const SafetensorsFile& file) {
  std::optional<RunConfig> run;
  if (!folder.empty() && is_run_folder(folder)) {
    run = read_run_folder(folder);
  } else if (const std::string text = metadata_entry(file, kExperimentKey); !text.empty()) {
    run = read_run_config(ConfigTable::from_string(text, file.path() + " (experiment)"));
  }
  if (!run.has_value()) return run;
  for (const auto& [side, field] : tokenizer_fields(*run)) {
    if (!is_tokenizer_file(*field)) continue;
    if (!folder.empty() && exists(kept_tokenizer_path(folder, side))) {
      *field = kept_tokenizer_path(folder, side);
    } else if (!metadata_entry(file, embedded_tokenizer_key(side)).empty()) {
      *field = file.path() + "#" + side;
    }
  }
  return run;
}

// Once per run: commands look up a model several times.
void note_checkpoint(const std::string& run, const std::string& file) {
  static std::set<std::string> said;
  if (!said.insert(run).second) return;
  log_info(
      "{}: no best model yet (written by the first evaluation): using the checkpoint of step {}",
      run, with_commas(checkpoint_step(file)));
}

[[noreturn]] void refuse_trained(const std::string& given) {
  const FileLook look = look_at_file(given);
  if (look.kind == FileKind::folder) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: is neither a run folder (no config.toml) nor an exported model", given),
        "run folders are created by 'rondo train'; 'rondo runs' lists them");
  }
  if (look.kind == FileKind::missing) {
    throw Error(ExitCode::bad_input, fmt::format("{}: no such run folder or model file", given),
                "run folders are created by 'rondo train', model files by 'rondo import'");
  }
  const std::string advice = advice_for(look, given);
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected a run folder or a model file, got {}", given, look.what),
              advice.empty() ? "'rondo runs' lists run folders" : advice);
}

}  // namespace

std::string best_model_path(const std::string& run) { return run + "/best.safetensors"; }

std::string kept_tokenizer_path(const std::string& run, const std::string& side) {
  return run + "/tokenizer." + side + ".model";
}

std::string kept_classes_path(const std::string& run) { return run + "/classes.tsv"; }

std::map<std::string, std::string> image_metadata(const AugmentConfig& augment,
                                                  const ClassNames& names) {
  std::map<std::string, std::string> metadata = {{kAugmentKey, dump_config(augment, "augment")}};
  if (!names.empty()) metadata[kClassNamesKey] = dump_class_names(names);
  return metadata;
}

std::vector<std::pair<std::string, std::string*>> tokenizer_fields(RunConfig& config) {
  return {{"text", &config.data.tokenizer},
          {"joint", &config.pairs.tokenizer},
          {"source", &config.pairs.source_tokenizer},
          {"target", &config.pairs.target_tokenizer}};
}

bool is_tokenizer_file(const std::string& tokenizer) {
  return !tokenizer.empty() && tokenizer != "bytes";
}

bool is_run_folder(const std::string& path) { return exists(path + "/config.toml"); }

int64_t checkpoint_step(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  const bool number = !stem.empty() && stem.size() < 19 &&
                      stem.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(stem) : -1;
}

std::vector<std::string> checkpoint_files(const std::string& run) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(run + "/checkpoints", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().string();
    if (entry->path().extension() == ".safetensors" && checkpoint_step(file) >= 0) {
      files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return checkpoint_step(a) > checkpoint_step(b);
  });
  return files;
}

std::string weights_file(const std::string& given) {
  if (!std::filesystem::is_directory(given)) return given;
  if (is_run_folder(given)) {
    if (exists(best_model_path(given))) return best_model_path(given);
    for (const std::string& file : checkpoint_files(given)) {
      if (look_at_file(file).kind == FileKind::safetensors) return file;
    }
    return "";
  }
  const std::string model = exported_model_path(given);
  return exists(model) ? model : "";
}

RunConfig read_run_folder(const std::string& path) {
  const std::string file = path + "/config.toml";
  if (!exists(file)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: not a run folder (no config.toml)", path),
                "run folders are created by 'rondo train'");
  }
  return read_run_config(ConfigTable::from_file(file));
}

TrainedFiles find_trained(const std::string& given) {
  const bool is_folder = std::filesystem::is_directory(given);
  TrainedFiles trained;
  trained.weights = weights_file(given);
  if (trained.weights.empty()) {
    if (!is_run_folder(given)) refuse_trained(given);
    throw Error(ExitCode::bad_input,
                fmt::format("{}: has not saved a model or checkpoint yet", given),
                "a checkpoint is written every train.save_every steps, on Ctrl-C, and on 'kill "
                "-USR1'");
  }
  if (is_named_model(given)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: has no weights", given),
                "pass a run folder or a model file (.safetensors)");
  }
  if (look_at_file(trained.weights).kind != FileKind::safetensors) {
    const bool named = trained.weights.size() > 12 &&
                       trained.weights.rfind(".safetensors") == trained.weights.size() - 12;
    // Errors of a damaged model file are left to its reader.
    if (!named || !exists(trained.weights)) refuse_trained(given);
  }
  const SafetensorsFile file = SafetensorsFile::open(trained.weights);
  const std::string folder = is_folder ? given : run_of_file(given);
  trained.model = resolve_model(trained.weights, {}).config;
  trained.run = find_experiment_of(folder, file);
  if (std::string("image") == trained.model.task()) find_image_facts(folder, file, trained);
  if (is_folder && metadata_entry(file, "format") == kCheckpointFormat) {
    note_checkpoint(given, trained.weights);
  }
  return trained;
}

ModelConfig with_loops(ModelConfig config, int64_t loops, const std::string& given) {
  const auto change = [&](auto& network) {
    DepthConfig& depth = network.depth;
    const DepthScheme& scheme = depth_schemes().find(depth.scheme);
    if (scheme.set_loops == nullptr) {
      throw Error(
          ExitCode::usage,
          fmt::format("{}: has no loops: its {} levels are all distinct", given, depth.levels),
          "--loops applies to schemes that reuse blocks, such as recursive, ring and universal");
    }
    scheme.set_loops(depth, loops);
  };
  std::visit(change, config.network);
  check_model_config(config, fmt::format("{} with --loops {}", given, loops));
  return config;
}

void keep_class_names(const std::string& run, const ClassNames& names) {
  write_file(kept_classes_path(run), dump_class_names(names));
}

void require_task(const TrainedFiles& trained, const std::string& given, const std::string& task) {
  if (task == trained.model.task()) return;
  const std::string expected = task == "lm"            ? "a language model"
                               : task == "translation" ? "a translation model"
                                                       : "an image model";
  throw Error(ExitCode::bad_input, fmt::format("{}: expected {}, got a model of kind {}", given,
                                               expected, trained.model.kind()));
}

std::string run_data(const std::optional<RunConfig>& run, const std::string& given,
                     const std::string& task, const std::string& split) {
  const RunConfig config = run.value_or(RunConfig());
  const auto part_of = [&](const std::string& wanted) {
    const auto part = [&](const auto& data) {
      return wanted == "train" ? data.train : wanted == "valid" ? data.valid : data.test;
    };
    return task == "image"         ? part(config.images)
           : task == "translation" ? part(config.pairs)
                                   : part(config.data);
  };
  if (std::string source = part_of(split); !source.empty()) return source;
  if (std::string source = part_of("valid"); split == "test" && !source.empty()) {
    log_info("{}: has no test data; using its validation data", given);
    return source;
  }
  throw Error(ExitCode::usage, fmt::format("{}: has no {} data", given, split),
              "pass it with --data");
}

void keep_tokenizers(const std::string& run, const RunConfig& config) {
  RunConfig copy = config;
  for (const auto& [side, field] : tokenizer_fields(copy)) {
    const std::string kept = kept_tokenizer_path(run, side);
    if (!is_tokenizer_file(*field) || exists(kept)) continue;
    write_file(kept, read_tokenizer_model(*field, kMaxTokenizerBytes));
  }
}

}  // namespace rondo
