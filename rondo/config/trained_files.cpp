// Finding trained models.
#include "rondo/config/trained_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/safetensors.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;

// The tokenizers an experiment names, by the side they are for.
std::vector<std::pair<std::string, std::string*>> tokenizer_fields(RunConfig& config) {
  return {{"text", &config.data.tokenizer},
          {"joint", &config.pairs.tokenizer},
          {"source", &config.pairs.source_tokenizer},
          {"target", &config.pairs.target_tokenizer}};
}

bool is_file_name(const std::string& tokenizer) {
  return !tokenizer.empty() && tokenizer != "bytes";
}

bool is_named_model(const std::string& name) {
  return std::any_of(zoo().begin(), zoo().end(),
                     [&](const ZooEntry& entry) { return entry.name == name; });
}

// Classes and the preparation of images, from the run folder or from the model file itself.
void find_image_facts(const std::string& given, TrainedFiles& trained) {
  const SafetensorsFile file = SafetensorsFile::open(trained.weights);
  const auto entry = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (trained.run.has_value()) {
    trained.augment = trained.run->augment;
  } else if (const std::string text = entry(kAugmentKey); !text.empty()) {
    const ConfigTable table = ConfigTable::from_string(text, trained.weights);
    read_config(table, "augment", trained.augment);
    check_augment(trained.augment, table.where("augment"));
  }
  if (trained.run.has_value() && exists(kept_classes_path(given))) {
    trained.classes = read_class_names(kept_classes_path(given));
  } else if (const std::string text = entry(kClassNamesKey); !text.empty()) {
    trained.classes = parse_class_names(text, trained.weights + " (classes)");
  }
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

RunConfig read_run_folder(const std::string& path) {
  const std::string file = path + "/config.toml";
  if (!exists(file)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: not a run folder (no config.toml)", path),
                "run folders are made by 'rondo train'");
  }
  return read_run_config(ConfigTable::from_file(file));
}

TrainedFiles find_trained(const std::string& given) {
  TrainedFiles trained;
  trained.weights = given;
  if (std::filesystem::is_directory(given)) {
    trained.run = read_run_folder(given);
    for (const auto& [side, field] : tokenizer_fields(*trained.run)) {
      const std::string kept = kept_tokenizer_path(given, side);
      if (is_file_name(*field) && exists(kept)) *field = kept;
    }
    trained.weights = best_model_path(given);
    if (!exists(trained.weights)) {
      throw Error(ExitCode::bad_input, fmt::format("{}: holds no finished model yet", given),
                  "the best model is written at the first evaluation and at the end of training");
    }
  }
  if (!exists(trained.weights) && !is_named_model(given)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: no such run folder or model file", given),
                "run folders are made by 'rondo train', model files by 'rondo import'");
  }
  const ResolvedModel resolved = resolve_model(trained.weights, {});
  if (resolved.weights.empty()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: has no weights", given),
                "give a run folder or a model file (.safetensors)");
  }
  trained.model = resolved.config;
  if (std::string("image") == trained.model.task()) find_image_facts(given, trained);
  return trained;
}

ModelConfig with_loops(ModelConfig config, int64_t loops, const std::string& given) {
  const auto change = [&](auto& network) {
    DepthConfig& depth = network.depth;
    const DepthScheme& scheme = depth_schemes().find(depth.scheme);
    if (scheme.set_loops == nullptr) {
      throw Error(
          ExitCode::usage,
          fmt::format("{}: has no loops: its {} levels are all different", given, depth.levels),
          "--loops is for schemes that use blocks again, such as recursive, ring and universal");
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

void keep_tokenizers(const std::string& run, const RunConfig& config) {
  RunConfig copy = config;
  for (const auto& [side, field] : tokenizer_fields(copy)) {
    const std::string kept = kept_tokenizer_path(run, side);
    if (!is_file_name(*field) || exists(kept)) continue;
    write_file(kept, read_text_file(*field, kMaxTokenizerBytes));
  }
}

}  // namespace rondo
