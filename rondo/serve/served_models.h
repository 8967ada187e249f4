// The models of a server, by name.
#pragma once

#include "rondo/infer/classifier.h"
#include "rondo/infer/load.h"
#include "rondo/infer/translator.h"
#include "rondo/serve/classify_batcher.h"
#include "rondo/serve/language_scheduler.h"
#include "rondo/serve/translate_batcher.h"

namespace rondo::serve {

struct ServedLanguageModel {
  std::string name;
  TrainedLanguageModel trained;
  std::string fingerprint;
  std::unique_ptr<LanguageScheduler> scheduler;
  bool recurrent = false;  // has recurrent states
  int64_t loops = 0;       // applications of its blocks; 0: its levels are all distinct
  // The same weights with other numbers of loops.
  std::vector<std::unique_ptr<ServedLanguageModel>> variants;
};

struct ServedTranslationModel {
  std::string name;
  TrainedTranslator trained;
  std::shared_ptr<const CompiledTranslationModel> compiled;
  std::unique_ptr<TranslateBatcher> batcher;
};

struct ServedImageModel {
  std::string name;
  ImageModel model;
  std::unique_ptr<Classifier> classifier;
  std::unique_ptr<ClassifyBatcher> batcher;
};

struct ServedModels {
  std::vector<std::unique_ptr<ServedLanguageModel>> language;
  std::vector<std::unique_ptr<ServedTranslationModel>> translation;
  std::vector<std::unique_ptr<ServedImageModel>> image;
  int64_t loaded = 0;  // time of loading, Unix seconds

  // The model called `name`; "" = the first. ApiError{404} if there is none, ApiError{400} or {422}
  // if it is not served with so many loops (0: as trained).
  ServedLanguageModel& find_language(const std::string& name, int64_t loops = 0) const;
  ServedTranslationModel& find_translation(const std::string& name) const;
  ServedImageModel& find_image(const std::string& name) const;
  // Language models and their variants.
  std::vector<ServedLanguageModel*> all_language() const;
};

struct ModelOptions {
  std::string tokenizer;  // "" = each model's own
  std::string weights = "fp32";
  std::vector<int64_t> loops;  // also serve these numbers, where a language model allows it
  Verify verify = Verify::checksum;
};

// `runs`: RUN, or NAME=RUN. Error{usage} if two have the same name, or
// `loops` are given and no model has any.
ServedModels load_models(const std::vector<std::string>& runs, const ModelOptions& options,
                         Metrics& metrics);

}  // namespace rondo::serve
