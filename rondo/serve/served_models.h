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

  // The model called `name`; "" = the first. ApiError{404} if there is none.
  ServedLanguageModel& find_language(const std::string& name) const;
  ServedTranslationModel& find_translation(const std::string& name) const;
  ServedImageModel& find_image(const std::string& name) const;
};

struct ModelOptions {
  std::string tokenizer;  // "" = each model's own
  std::string weights = "fp32";
  Verify verify = Verify::checksum;
};

// `runs`: RUN, or NAME=RUN. Error{usage} if two have the same name.
ServedModels load_models(const std::vector<std::string>& runs, const ModelOptions& options,
                         Metrics& metrics);

}  // namespace rondo::serve
