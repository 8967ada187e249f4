// Loads trained models from a run folder (its best model) or a model file: the network in
// evaluation mode, with its tokenizers, class names and image preprocessing.
#pragma once

#include <variant>

#include "rondo/config/trained_files.h"
#include "rondo/data/pair_tokenizers.h"
#include "rondo/infer/image_model.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/model/language_model.h"

namespace rondo {

struct TrainedLanguageModel {
  std::shared_ptr<LanguageModel> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  ModelConfig config;
  TextConfig data;  // of the run; empty for a model file

  // Of model and tokenizer, for their states. Hashes all weights: call only if there is a state.
  std::string fingerprint() const;
};

// `given`: a run folder or a model file. `tokenizer`: overrides the run's; "" = the run's, or
// bytes. Throws Error{bad_input} if `given` is neither, or not a language model.
TrainedLanguageModel load_language_model(const std::string& given, const std::string& tokenizer,
                                         Verify verify = Verify::checksum);

struct TrainedTranslator {
  std::shared_ptr<EncoderDecoder> model;
  PairTokenizers tokenizers;
  PairConfig data;  // of the run; empty for a model file
};

// `tokenizer`: overrides the run's, for both sides; a model file needs it.
TrainedTranslator load_translation_model(const std::string& given, const std::string& tokenizer,
                                         Verify verify = Verify::checksum);

// Loads any of them. `tokenizer`: as above; image networks have none.
using TrainedModel = std::variant<TrainedLanguageModel, TrainedTranslator, ImageModel>;
TrainedModel load(const std::string& given, const std::string& tokenizer = "",
                  Verify verify = Verify::checksum);

}  // namespace rondo
