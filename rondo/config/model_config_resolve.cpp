// Resolving a command-line argument to a model configuration.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/file_kind.h"
#include "rondo/base/files.h"
#include "rondo/base/safetensors.h"
#include "rondo/config/depth_plan.h"
#include "rondo/config/trained_files.h"
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Lower bounds on the weights a configuration implies: unshared feed-forward matrices, embeddings
// and heads. In double, since claimed sizes may be arbitrary.
struct LeastWeights {
  double blocks = 0;  // with their own weights
  double elements = 0;

  void add(const DepthConfig& depth, int64_t stage, double width, double hidden) {
    const DepthPlan plan = make_plan(depth, PlanShape{}, stage);
    blocks += double(std::max(plan.mixings(), plan.signals()));
    elements += 2.0 * width * hidden * double(plan.feed_forwards());
  }
  void operator()(const EncoderDecoderConfig& c) {
    add(c.depth, 0, double(c.width), double(c.hidden));
    elements += double(c.width) * double(c.source_vocabulary + c.target_vocabulary);
  }
  void operator()(const VisionConfig& c) {
    add(c.depth, 0, double(c.width), double(c.hidden));
    elements += double(c.width) * double(c.classes);
  }
  void operator()(const PyramidConfig& c) {
    for (int64_t s = 0; s < c.stages(); ++s) {
      const auto width = double(c.widths[static_cast<size_t>(s)]);
      add(c.depth, s, width, std::floor(width * c.hidden_ratio));
    }
    elements += double(c.widths.back()) * double(c.classes);
  }
  void operator()(const LanguageModelConfig& c) {
    add(c.depth, 0, double(c.width), double(c.hidden));
    elements += double(c.width) * double(c.vocabulary);
  }
};

// Rejects a model file whose configuration claims more than the file can hold, before a network is
// built from it.
void check_claims(const ModelConfig& config, const SafetensorsFile& file) {
  LeastWeights least;
  std::visit([&](const auto& network) { least(network); }, config.network);
  const auto tensors = static_cast<double>(file.entries().size());
  const double bytes = file.entries().empty() ? 0.0 : double(file.entries().back().end);
  if (least.blocks <= tensors && least.elements <= bytes) return;
  const bool many = least.blocks > tensors;
  throw Error(
      ExitCode::bad_input,
      fmt::format("{}: its configuration claims at least {:.0f} {}, but the file holds {:.0f} {}",
                  file.path(), many ? least.blocks : least.elements,
                  many ? "levels or blocks with their own tensors" : "weights",
                  many ? tensors : bytes, many ? "tensors" : "bytes of data"),
      "the file is damaged, or its configuration belongs to another model");
}

ConfigTable table_of_model_file(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kModelConfigKey);
  if (found != file.metadata().end()) {
    return ConfigTable::from_string(found->second, file.path() + " (configuration)");
  }
  // Checkpoints of earlier versions take their configuration from the run.
  const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  const auto format = file.metadata().find("format");
  if (format != file.metadata().end() && format->second == kCheckpointFormat &&
      is_run_folder(folder.parent_path().string())) {
    return ConfigTable::from_file((folder.parent_path() / "config.toml").string());
  }
  throw Error(ExitCode::bad_input,
              fmt::format("{}: contains weights but no configuration (metadata '{}' is missing)",
                          file.path(), kModelConfigKey),
              "name the model and pass this file with --weights");
}

// Rejects a file that is neither a model nor TOML, naming its type.
void require_config_file(const std::string& path) {
  const FileLook look = look_at_file(path);
  if (look.kind == FileKind::missing || look.kind == FileKind::toml ||
      look.kind == FileKind::empty || ends_with(path, ".toml")) {
    return;
  }
  const std::string advice = advice_for(look, path);
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected a model (a name, a TOML configuration, a model file or a "
                          "run folder), got {}",
                          path, look.what),
              advice.empty() ? "'rondo models' lists all names" : advice);
}

}  // namespace

ResolvedModel resolve_model(const std::string& given, const std::vector<std::string>& assignments) {
  ResolvedModel model;
  model.name = given;
  ConfigTable table;
  const std::string weights = weights_file(given);
  if (ends_with(weights, ".safetensors")) {
    const SafetensorsFile file = SafetensorsFile::open(weights);
    table = table_of_model_file(file);
    check_claims(read_model_config(table), file);
    model.weights = weights;
  } else if (ends_with(given, ".toml") || exists(given)) {
    require_config_file(given);
    table = ConfigTable::from_file(given);
  } else {
    table = ConfigTable::from_string(dump_model_config(find_model(given).config()), given);
  }
  for (const std::string& assignment : assignments) table.set(assignment);
  model.config = read_model_config(table);
  return model;
}

}  // namespace rondo
