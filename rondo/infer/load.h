// Trained models ready for use, from a run folder (its best model) or a model file: the network in
// evaluation mode, with the tokenizers, class names and image preparation that belong to it.
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

  // Of model and tokenizer: whose states these are. Reads all weights, so ask only if one is there.
  std::string fingerprint() const;
};

// `given`: a run folder or a model file. `tokenizer`: overrides the run's; "" = the run's, or
// bytes. Error{bad_input} if it is neither, or not a language model.
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

// Any of them. `tokenizer`: as above; image networks have none.
using TrainedModel = std::variant<TrainedLanguageModel, TrainedTranslator, ImageModel>;
TrainedModel load(const std::string& given, const std::string& tokenizer = "",
                  Verify verify = Verify::checksum);

}  // namespace rondo
