// Reading and dumping a model's configuration; checks are in model_config_check.cpp.
#include "rondo/config/model_config.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

struct Kind {
  const char* name;
  const char* task;
};

// In the order of the variant alternatives.
constexpr Kind kKinds[] = {
    {"encoder-decoder", "translation"},
    {"vision", "image"},
    {"pyramid", "image"},
    {"language-model", "lm"},
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

ModelConfig default_of_kind(const std::string& kind, const std::string& where) {
  if (kind == "encoder-decoder") return {EncoderDecoderConfig{}};
  if (kind == "vision") return {VisionConfig{}};
  if (kind == "pyramid") return {PyramidConfig{}};
  if (kind == "language-model") return {LanguageModelConfig{}};
  throw Error(ExitCode::bad_input, fmt::format("{}: unknown kind of network '{}'", where, kind),
              fmt::format("choose one of {}; {}", fmt::join(kind_names(), ", "),
                          did_you_mean(kind, kind_names())));
}

ModelConfig starting_point(const ConfigTable& table) {
  const auto base = table.get_string("model.base");
  const auto kind = table.get_string("model.kind");
  if (base.has_value()) {
    ModelConfig config = find_model(*base).config();
    if (kind.has_value() && *kind != config.kind()) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected \"{}\", the kind of {}, got \"{}\"",
                              table.where("model.kind"), config.kind(), *base, *kind),
                  "omit model.kind when model.base is given");
    }
    return config;
  }
  if (!kind.has_value()) {
    throw Error(
        ExitCode::bad_input, fmt::format("{}: missing", table.where("model.kind")),
        fmt::format("set it to one of {}, or set model.base to a name listed by 'rondo models'",
                    fmt::join(kind_names(), ", ")));
  }
  return default_of_kind(*kind, table.where("model.kind"));
}

}  // namespace

const char* ModelConfig::kind() const { return kKinds[network.index()].name; }
const char* ModelConfig::task() const { return kKinds[network.index()].task; }

ModelConfig read_model_config(const ConfigTable& table) {
  ModelConfig config = starting_point(table);
  std::visit(
      [&](auto& network) {
        read_config(table, "model", network, {"kind", "base"});
      },
      config.network);
  check_model_config(config, table.source_name());
  return config;
}

std::string dump_model_config(const ModelConfig& config) {
  // "kind" must be inside [model], before its sections.
  std::string body =
      std::visit([](const auto& network) { return dump_config(network, "model"); }, config.network);
  const std::string header = "[model]\n";
  const auto at = body.find(header);
  body.insert(at == std::string::npos ? 0 : at + header.size(),
              fmt::format("kind = \"{}\"\n", config.kind()));
  return body;
}

std::vector<FieldHelp> model_config_help(const std::string& kind) {
  const ModelConfig config = default_of_kind(kind, "kind");
  return std::visit([](const auto& network) { return config_help(network); }, config.network);
}

void apply_sizes(ModelConfig& config, const SizeOverrides& sizes) {
  const auto refuse = [&](const char* option) {
    throw Error(ExitCode::usage,
                fmt::format("{} does not apply to a model of kind {}", option, config.kind()));
  };
  if (sizes.image != 0 || sizes.classes != 0) {
    const auto set = [&](auto& c) {
      if (sizes.image != 0) c.image = sizes.image;
      if (sizes.classes != 0) c.classes = sizes.classes;
    };
    if (auto* vision = std::get_if<VisionConfig>(&config.network)) {
      set(*vision);
    } else if (auto* pyramid = std::get_if<PyramidConfig>(&config.network)) {
      set(*pyramid);
    } else {
      refuse(sizes.image != 0 ? "--image" : "--classes");
    }
  }
  if (sizes.vocabulary != 0) {
    if (auto* text = std::get_if<EncoderDecoderConfig>(&config.network)) {
      text->source_vocabulary = text->target_vocabulary = sizes.vocabulary;
    } else if (auto* lm = std::get_if<LanguageModelConfig>(&config.network)) {
      lm->vocabulary = sizes.vocabulary;
    } else {
      refuse("--vocab");
    }
  }
  check_model_config(config, "the sizes given");
}

int64_t image_side(const ModelConfig& config) {
  const auto* vision = std::get_if<VisionConfig>(&config.network);
  return vision != nullptr ? vision->image : std::get<PyramidConfig>(config.network).image;
}

int64_t image_classes(const ModelConfig& config) {
  const auto* vision = std::get_if<VisionConfig>(&config.network);
  return vision != nullptr ? vision->classes : std::get<PyramidConfig>(config.network).classes;
}

}  // namespace rondo
