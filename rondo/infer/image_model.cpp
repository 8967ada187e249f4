// Loading image networks.
#include "rondo/infer/image_model.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/depth_plan.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/model/pyramid.h"
#include "rondo/model/vision.h"

namespace rondo {
namespace {

const DepthConfig& depth_of(const ModelConfig& config) {
  const auto* vision = std::get_if<VisionConfig>(&config.network);
  return vision != nullptr ? vision->depth : std::get<PyramidConfig>(config.network).depth;
}

// With fewer loops than in training, the weights of the first loops are used.
std::string trained_name(const std::string& name, const DepthConfig& now,
                         const DepthConfig& trained) {
  const int64_t stage = name.rfind("stage.", 0) == 0 ? std::stoll(name.substr(6)) : 0;
  return name_in_training(name, make_plan(now, PlanShape{}, stage),
                          make_plan(trained, PlanShape{}, stage));
}

// Loads the weights the network needs; a file with more loops or levels contains more.
void load_part(Network& network, const TrainedFiles& files, const ModelConfig& config,
               const std::string& given, int64_t loops, Verify verify) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile file = SafetensorsFile::open(files.weights);
  if (verify == Verify::checksum) file.verify();
  for (const auto& [name, tensor] : named_tensors(network)) {
    const std::string theirs = trained_name(name, depth_of(config), depth_of(files.model));
    const TensorEntry* entry = find_weight(file, theirs);
    if (entry == nullptr) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: cannot apply {} loops: every loop has its own weights, and '{}' "
                              "is missing",
                              given, loops, name),
                  "use at most as many as in training");
    }
    const Tensor weights = tensor_view(file, *entry);
    if (weights.sizes() != tensor.sizes()) {
      throw Error(
          ExitCode::bad_input,
          fmt::format("{}: tensor '{}': expected shape [{}], got [{}]", file.path(), theirs,
                      fmt::join(tensor.sizes().vec(), ", "), fmt::join(entry->shape, ", ")));
    }
    require_finite(weights, theirs, file.path());
    Tensor target = tensor;
    target.copy_(weights);
  }
}

}  // namespace

ImageModel load_image_model(const std::string& given, int64_t loops, Verify verify) {
  const TrainedFiles files = find_trained(given);
  require_task(files, given, "image");
  ImageModel model;
  model.config = loops > 0 ? with_loops(files.model, loops, given) : files.model;
  model.network = build_network(model.config);
  if (loops > 0) {
    load_part(*model.network, files, model.config, given, loops, verify);
  } else {
    load_weights(*model.network, SafetensorsFile::open(files.weights), verify);
  }
  model.network->eval();
  model.augment = files.augment;
  if (files.run.has_value()) model.data = files.run->images;
  model.names = files.classes;
  for (int64_t i = model.names.count(); i < image_classes(model.config); ++i) {
    model.names.ids.push_back(std::to_string(i));
    model.names.titles.push_back(model.names.ids.back());
  }
  return model;
}

std::shared_ptr<const CompiledImageNetwork> compile_image_network(const Network& network) {
  if (const auto* vision = dynamic_cast<const Vision*>(&network)) return vision->compile();
  const auto* pyramid = dynamic_cast<const Pyramid*>(&network);
  RONDO_ASSERT(pyramid != nullptr);
  return pyramid->compile();
}

Tensor image_logits(Network& network, const Tensor& images) {
  const c10::InferenceMode no_gradients;
  State state;
  return network.forward({{"images", images}}, state, Scope()).at("logits").to(at::kFloat);
}

ClassNames read_names_for(const ModelConfig& config, const std::string& path) {
  if (std::string(config.task()) != "image") {
    throw Error(ExitCode::usage,
                fmt::format("--classes does not apply to a model of kind {}", config.kind()));
  }
  ClassNames names = read_class_names(path);
  const int64_t classes = image_classes(config);
  if (names.count() != classes) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected {} classes, as in the network, got {}", path,
                            with_commas(classes), with_commas(names.count())),
                "list one class per line, in the order of class numbers");
  }
  return names;
}

}  // namespace rondo
