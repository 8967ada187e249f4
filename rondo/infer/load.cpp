// Loading trained models.
#include "rondo/infer/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/config/depth_scheme.h"
#include "rondo/config/time_kind.h"
#include "rondo/infer/loops.h"

namespace rondo {
namespace {

bool same_weights(const Level& a, const Level& b) {
  return a.mixing == b.mixing && a.feed_forward == b.feed_forward &&
         a.mixing_norm == b.mixing_norm && a.feed_forward_norm == b.feed_forward_norm &&
         a.signal == b.signal && a.residual == b.residual && a.projection == b.projection;
}

// Layers with a recurrent state or a memory own their weights and are named by their level, which
// must not become another block.
void check_own_layers(const LanguageModel& now, const LanguageModel& trained, int64_t loops,
                      const std::string& given) {
  const TimeConfig& time = now.config().time;
  const TimeKind& kind = time_kinds().find(time.kind);
  if (kind.own_layers == nullptr || kind.own_layers(time).empty()) return;
  const std::vector<Level>& a = now.plan().levels;
  const std::vector<Level>& b = trained.plan().levels;
  const auto common = static_cast<int64_t>(std::min(a.size(), b.size()));
  if (std::equal(a.begin(), a.begin() + common, b.begin(), same_weights)) return;
  throw Error(ExitCode::usage,
              fmt::format("{}: cannot apply {} loops: its {} layers are numbered by level, and "
                          "their levels would become other blocks",
                          given, loops, time.kind),
              "model.depth.recursive.order = \"external\" keeps the order of levels");
}

}  // namespace

std::string TrainedLanguageModel::fingerprint() const {
  return rondo::fingerprint(config, *model) + "-" + tokenizer->fingerprint();
}

TrainedLanguageModel load_language_model(const std::string& given, const std::string& tokenizer,
                                         Verify verify) {
  const TrainedFiles files = find_trained(given);
  require_task(files, given, "lm");
  const auto& config = std::get<LanguageModelConfig>(files.model.network);
  TrainedLanguageModel trained;
  if (files.run.has_value()) trained.data = files.run->data;
  const std::string chosen = tokenizer.empty() ? trained.data.tokenizer : tokenizer;
  trained.tokenizer = make_tokenizer(chosen);
  if (trained.tokenizer->vocabulary() > config.vocabulary) {
    throw Error(ExitCode::bad_input,
                fmt::format("tokenizer {}: expected at most {} tokens, as in the model, got {}",
                            chosen, config.vocabulary, trained.tokenizer->vocabulary()),
                "use the tokenizer the model was trained with");
  }
  trained.config = files.model;
  trained.model = std::make_shared<LanguageModel>(config);
  load_weights(*trained.model, SafetensorsFile::open(files.weights), verify);
  trained.model->eval();
  return trained;
}

TrainedLanguageModel with_loops(const TrainedLanguageModel& trained, int64_t loops,
                                const std::string& given) {
  TrainedLanguageModel other = trained;
  other.config = with_loops(trained.config, loops, given);
  other.model =
      std::make_shared<LanguageModel>(std::get<LanguageModelConfig>(other.config.network));
  check_own_layers(*other.model, *trained.model, loops, given);
  const NamedTensors weights = named_tensors(*trained.model);
  for (auto& [name, tensor] : named_tensors(*other.model)) {
    const auto found =
        weights.find(name_in_training(name, other.model->plan(), trained.model->plan()));
    if (found == weights.end() || found->second.sizes() != tensor.sizes()) {
      throw Error(
          ExitCode::usage,
          fmt::format("{}: cannot apply {} loops: '{}' was not trained", given, loops, name),
          "use at most as many as in training: every loop has weights of its own");
    }
    Tensor mine = tensor;
    mine.set_data(found->second.detach());
  }
  other.model->eval();
  return other;
}

TrainedTranslator load_translation_model(const std::string& given, const std::string& tokenizer,
                                         Verify verify) {
  const TrainedFiles files = find_trained(given);
  require_task(files, given, "translation");
  const auto& config = std::get<EncoderDecoderConfig>(files.model.network);
  TrainedTranslator trained;
  if (files.run.has_value()) trained.data = files.run->pairs;
  if (!tokenizer.empty()) {
    trained.data.tokenizer = tokenizer;
    trained.data.source_tokenizer.clear();
    trained.data.target_tokenizer.clear();
  }
  if (trained.data.tokenizer_of_source().empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: a model file does not name its tokenizer", given),
                "pass it with --tokenizer FILE");
  }
  trained.tokenizers = open_pair_tokenizers(trained.data, config);
  trained.model = std::make_shared<EncoderDecoder>(config);
  load_weights(*trained.model, SafetensorsFile::open(files.weights), verify);
  trained.model->eval();
  return trained;
}

TrainedModel load(const std::string& given, const std::string& tokenizer, Verify verify) {
  const std::string task = find_trained(given).model.task();
  if (task == "lm") return load_language_model(given, tokenizer, verify);
  if (task == "translation") return load_translation_model(given, tokenizer, verify);
  return load_image_model(given, 0, verify);
}

}  // namespace rondo
