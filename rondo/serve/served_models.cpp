// Loads the models to serve.
#include "rondo/serve/served_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/infer/loops.h"

namespace rondo::serve {
namespace {

kernels::PackedFormat packed_format(const std::string& name) {
  if (name == "bf16") return kernels::PackedFormat::bf16;
  return name == "int8" ? kernels::PackedFormat::int8 : kernels::PackedFormat::fp32;
}

nn::WeightFormat weight_format(const std::string& name) {
  if (name == "bf16") return nn::WeightFormat::bf16;
  return name == "int8" ? nn::WeightFormat::int8 : nn::WeightFormat::fp32;
}

// "NAME=RUN", or RUN, named after the last part of its path.
std::pair<std::string, std::string> name_and_path(const std::string& given) {
  const size_t equals = given.find('=');
  if (equals != std::string::npos && given.find('/') > equals) {
    return {given.substr(0, equals), given.substr(equals + 1)};
  }
  std::filesystem::path path = std::filesystem::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return {path.extension() == ".safetensors" ? path.stem() : path.filename(), given};
}

template <class Model>
Model& find_served(const std::vector<std::unique_ptr<Model>>& models, const std::string& name,
                   const char* kind) {
  if (models.empty()) throw http::ApiError(404, fmt::format("no {} is served here", kind), "model");
  if (name.empty()) return *models.front();
  for (const auto& model : models) {
    if (model->name == name) return *model;
  }
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(model->name);
  throw http::ApiError(
      404,
      fmt::format("no {} is called '{}'; available: {}", kind, printable(name), join(names, ", ")),
      "model");
}

std::unique_ptr<ServedLanguageModel> served_language_model(const std::string& name,
                                                           TrainedLanguageModel trained,
                                                           const ModelOptions& options,
                                                           Metrics& metrics) {
  auto served = std::make_unique<ServedLanguageModel>();
  served->name = name;
  served->fingerprint = trained.fingerprint();
  served->recurrent = trained.model->stack().has_states();
  const auto compiled =
      std::make_shared<CompiledLanguageModel>(trained.model, packed_format(options.weights));
  served->scheduler = std::make_unique<LanguageScheduler>(
      compiled, trained.tokenizer->encode("\n").front(), metrics);
  served->loops = loops_of(trained.model->config().depth);
  served->trained = std::move(trained);
  return served;
}

void add_model(ServedModels& models, const std::string& name, TrainedLanguageModel trained,
               const ModelOptions& options, Metrics& metrics) {
  const int64_t own = loops_of(trained.model->config().depth);
  std::vector<std::unique_ptr<ServedLanguageModel>> variants;
  for (const int64_t loops : options.loops) {
    const bool there = std::any_of(variants.begin(), variants.end(),
                                   [&](const auto& variant) { return variant->loops == loops; });
    if (own == 0 || loops == own || there) continue;
    variants.push_back(
        served_language_model(name, with_loops(trained, loops, name), options, metrics));
  }
  models.language.push_back(served_language_model(name, std::move(trained), options, metrics));
  models.language.back()->variants = std::move(variants);
}

void add_model(ServedModels& models, const std::string& name, TrainedTranslator trained,
               const ModelOptions& options, Metrics& metrics) {
  auto served = std::make_unique<ServedTranslationModel>();
  served->name = name;
  served->compiled = std::make_shared<CompiledTranslationModel>(
      *trained.model, weight_format(options.weights), SignalMode::folded);
  served->batcher =
      std::make_unique<TranslateBatcher>(served->compiled, trained.tokenizers, metrics);
  served->trained = std::move(trained);
  models.translation.push_back(std::move(served));
}

void add_model(ServedModels& models, const std::string& name, ImageModel model, const ModelOptions&,
               Metrics& metrics) {
  auto served = std::make_unique<ServedImageModel>();
  served->name = name;
  served->classifier = std::make_unique<Classifier>(model);
  served->batcher = std::make_unique<ClassifyBatcher>(*served->classifier, metrics);
  served->model = std::move(model);
  models.image.push_back(std::move(served));
}

}  // namespace

ServedLanguageModel& ServedModels::find_language(const std::string& name, int64_t loops) const {
  ServedLanguageModel& model = find_served(language, name, "language model");
  if (loops == 0 || loops == model.loops) return model;
  if (model.loops == 0) {
    throw http::ApiError(
        400, fmt::format("loops: the levels of model '{}' are all distinct; omit it", model.name),
        "loops");
  }
  std::vector<std::string> numbers = {fmt::format("{} (as trained)", model.loops)};
  for (const auto& variant : model.variants) {
    if (variant->loops == loops) return *variant;
    numbers.push_back(std::to_string(variant->loops));
  }
  throw http::ApiError(
      422,
      fmt::format("loops: expected one of {}, got {}; 'rondo serve --loops' serves other numbers",
                  join(numbers, ", "), loops),
      "loops");
}

std::vector<ServedLanguageModel*> ServedModels::all_language() const {
  std::vector<ServedLanguageModel*> all;
  for (const auto& model : language) {
    all.push_back(model.get());
    for (const auto& variant : model->variants) all.push_back(variant.get());
  }
  return all;
}

ServedTranslationModel& ServedModels::find_translation(const std::string& name) const {
  return find_served(translation, name, "translation model");
}

ServedImageModel& ServedModels::find_image(const std::string& name) const {
  return find_served(image, name, "image model");
}

ServedModels load_models(const std::vector<std::string>& runs, const ModelOptions& options,
                         Metrics& metrics) {
  ServedModels models;
  std::set<std::string> names;
  for (const std::string& given : runs) {
    const auto [name, path] = name_and_path(given);
    if (!names.insert(name).second) {
      throw Error(ExitCode::usage, fmt::format("two models have the name '{}'", name),
                  "give them names: rondo serve first=RUN second=RUN");
    }
    std::visit(
        [&, &chosen = name](auto trained) {
          add_model(models, chosen, std::move(trained), options, metrics);
        },
        load(path, options.tokenizer, options.verify));
  }
  const auto all = models.all_language();
  const bool any = std::any_of(all.begin(), all.end(), [](const auto* m) { return m->loops > 0; });
  if (!options.loops.empty() && !any) {
    throw Error(ExitCode::usage, "--loops: no language model that is served here has any",
                "it applies to schemes that reuse blocks: recursive, ring and universal");
  }
  models.loaded = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  return models;
}

}  // namespace rondo::serve
