// Documentation of an exported model: a model card for people, config.json for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "rondo/config/trained_files.h"
#include "rondo/project/runs.h"

namespace rondo {

struct ExportFacts {
  std::string name;       // of the folder
  std::string precision;  // of the weights: "fp32" or "bf16"
  int64_t parameters = 0;
  int64_t step = 0;  // of the weights; 0 if unknown
  TrainedFiles trained;
  std::optional<RunSummary> run;  // if it comes from a run
};

// README.md.
std::string model_card(const ExportFacts& facts);

// config.json: task, kind, all model and training keys, tokenizers, scores, commit.
nlohmann::json export_config(const ExportFacts& facts);

// An experiment as JSON, by sections.
nlohmann::json experiment_json(const RunConfig& config);

}  // namespace rondo
