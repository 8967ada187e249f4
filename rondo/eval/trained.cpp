// Loading a trained language model.
#include "rondo/eval/trained.h"

#include <fmt/format.h>

#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/train/run_folder.h"

namespace rondo {

TrainedLanguageModel load_language_model(const std::string& given, const std::string& tokenizer) {
  TrainedLanguageModel trained;
  std::string file = given;
  if (std::filesystem::is_directory(given)) {
    trained.data = read_run_folder(given).data;
    file = RunFolder::best_path_of(given);
    if (!exists(file)) {
      throw Error(ExitCode::bad_input, fmt::format("{}: holds no finished model yet", given),
                  "the best model is written at the first evaluation and at the end of training");
    }
  }
  const ResolvedModel resolved = resolve_model(file, {});
  if (resolved.weights.empty()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: has no weights", given),
                "give a run folder or a model file (.safetensors)");
  }
  const auto* config = std::get_if<LanguageModelConfig>(&resolved.config.network);
  if (config == nullptr) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a language model, got a model of kind {}", given,
                            resolved.config.kind()));
  }
  const std::string chosen = !tokenizer.empty()                ? tokenizer
                             : !trained.data.tokenizer.empty() ? trained.data.tokenizer
                                                               : "bytes";
  trained.tokenizer = make_tokenizer(chosen);
  if (trained.tokenizer->vocabulary() > config->vocabulary) {
    throw Error(ExitCode::bad_input,
                fmt::format("tokenizer {}: expected at most {} tokens as in the model, got {}",
                            chosen, config->vocabulary, trained.tokenizer->vocabulary()),
                "use the tokenizer the model was trained with");
  }
  trained.config = resolved.config;
  trained.model = std::make_shared<LanguageModel>(*config);
  load_weights(*trained.model, SafetensorsFile::open(file));
  trained.model->eval();
  trained.fingerprint =
      fingerprint(trained.config, *trained.model) + "-" + trained.tokenizer->fingerprint();
  return trained;
}

}  // namespace rondo
