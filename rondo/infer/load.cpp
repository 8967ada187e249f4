// Loading trained models.
#include "rondo/infer/load.h"

#include <fmt/format.h>

#include "rondo/base/error.h"

namespace rondo {

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
